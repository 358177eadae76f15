# `make run` and `make test` need Go 1.26, Python 3 and apt; they fetch what else they need.
.DEFAULT_GOAL := help
SHELL := /bin/bash

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 30s

# so that `make run ENVOY_PORT=…` reaches the script
export CONFIG REDIS_URL ENVOY_PORT ENVOY_ADMIN_PORT GRPC_PORT ADMIN_PORT UPSTREAM_PORT

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/ratelimitd
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/ratelimitd ./cmd/ratelimitd

.PHONY: run
run: build ## start ratelimitd, a real Envoy and an upstream; REDIS_URL=redis://… keeps the buckets there
	@CGO_ENABLED=0 go build -trimpath -o bin/upstream ./test/upstream
	@exec scripts/run

.PHONY: test
test: ## run every test, through a real Envoy and a real Redis
	@scripts/test-tools
	@RATELIMITD_ENVOY=$$(scripts/envoy) CGO_ENABLED=1 go test -race -timeout 10m ./...

.PHONY: test-long
test-long: test ## run every test, then the long forms, about a quarter of an hour, and print their figures
	@scripts/test-long

.PHONY: lint
lint: ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l cmd internal lua test)" || { gofmt -l cmd internal lua test; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...

.PHONY: fuzz
fuzz: ## fuzz what strangers can send and what operators can write, FUZZTIME=30s each
	@set -e; for pkg in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg; done; done

.PHONY: accuracy
accuracy: ## measure the algorithms: docs/accuracy.md and its plots; LOGS=folder replays access logs (*.log.gz) too
	go run ./test/accuracy -logs "$(LOGS)"

.PHONY: bench bench-short
bench: build ## measure what a decision costs, and fail where it is more than it must be; four minutes on an idle machine
	@scripts/test-tools
	@go build -trimpath -o bin/bench ./test/bench
	@exec bin/bench $(BENCHFLAGS)

bench-short: BENCHFLAGS := -short
bench-short: bench ## the same in half a minute, with half as much again allowed: for CI

.PHONY: bench-envoy bench-envoy-settings
bench-envoy: build ## measure what a request costs through a real Envoy, in two minutes; as root it is less disturbed by others
	@scripts/test-tools
	@go build -trimpath -o bin/bench ./test/bench
	@RATELIMITD_ENVOY=$$(scripts/envoy) nice -n -20 bin/bench -envoy

bench-envoy-settings: build ## count the instructions that each of Envoy's settings costs; needs valgrind, five minutes
	@go build -trimpath -o bin/bench ./test/bench
	@RATELIMITD_ENVOY=$$(scripts/envoy) bin/bench -envoy-settings

.PHONY: bench-scale
bench-scale: build ## measure several daemons on one Redis and on a Redis Cluster, in two minutes
	@scripts/test-tools
	@go build -trimpath -o bin/bench ./test/bench
	@exec bin/bench -scale

.PHONY: image
image: ## build the container image ratelimitd:VERSION
	docker build --build-arg VERSION=$(VERSION) --tag ratelimitd:$(VERSION) .

.PHONY: clean
clean: ## remove what the build and the scripts made
	rm -rf bin .run .tools
