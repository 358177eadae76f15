# The daemon alone, static, in an image without a shell or a package manager:
#   docker build -t ratelimitd .
#   docker run -v $PWD/config.example.yaml:/etc/ratelimitd/config.yaml:ro ratelimitd

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/ratelimitd ./cmd/ratelimitd \
 && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /out/upstream ./test/upstream \
 && mkdir -p /out/run/ratelimitd

# Something for Envoy to stand in front of; only the compose file uses it.
FROM scratch AS upstream
COPY --from=build /out/upstream /upstream
USER 65532:65532
ENTRYPOINT ["/upstream"]

FROM scratch
# For rediss:// and for rules with a time zone.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /usr/local/go/lib/time/zoneinfo.zip /usr/local/go/lib/time/zoneinfo.zip
ENV ZONEINFO=/usr/local/go/lib/time/zoneinfo.zip
COPY --from=build /out/ratelimitd /ratelimitd
# A place for a unix socket that a volume can be shared over.
COPY --from=build --chown=65532:65532 /out/run/ratelimitd /run/ratelimitd
USER 65532:65532
ENTRYPOINT ["/ratelimitd"]
CMD ["serve", "--config", "/etc/ratelimitd/config.yaml"]
