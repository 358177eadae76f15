package authz

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

const grpcType = "application/grpc"

// grpcWebTypes are the two flavours of gRPC-Web.
var grpcWebTypes = []string{"application/grpc-web", "application/grpc-web-text"}

// grpcContentType returns the content-type of an answer to a gRPC or gRPC-Web request; ok is false for other requests.
func grpcContentType(request *rules.Request) (contentType string, ok bool) {
	asked := ""
	for _, h := range request.Headers {
		switch {
		case h.Name != "content-type":
		case asked != "": // joined by Envoy, two lines are no media type either
			return "", false
		default:
			asked = h.Value
		}
	}
	for _, webType := range grpcWebTypes {
		if isMediaType(asked, webType) {
			// A gRPC-Web client gets back what it asked for, word for word: the one value of ours that a client chooses.
			if isPrintable(asked) {
				return asked, true
			}
			return webType, true
		}
	}
	return grpcType, isMediaType(asked, grpcType)
}

// isMediaType reports whether a content-type is that media type, in any case, alone or with a suffix or parameters.
func isMediaType(contentType, mediaType string) bool {
	n := len(mediaType)
	if len(contentType) < n || !strings.EqualFold(contentType[:n], mediaType) {
		return false
	}
	return len(contentType) == n || contentType[n] == '+' || contentType[n] == ';'
}

// isPrintable reports whether the text is ASCII without control characters.
func isPrintable(text string) bool {
	for i := range len(text) {
		if text[i] < 0x20 || text[i] > 0x7e {
			return false
		}
	}
	return true
}

// appendDeniedGRPC appends the refusal of a gRPC request. Envoy would make UNAVAILABLE of a 429, which clients retry at once,
// and a body would take the message's place: so HTTP says 200, and the status is in the headers, which become trailers.
func (o *outcome) appendDeniedGRPC(b []byte, answer *Answer, contentType string) []byte {
	refusal := o.refusal(answer)
	status := &statuspb.Status{Code: int32(refusal.code), Message: refusal.message}
	if seconds, ok := o.retryAfter(); ok {
		status.Message += ", retry in " + strconv.FormatInt(seconds, 10) + " s"
		retry := &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(seconds) * time.Second)}
		if detail, err := anypb.New(retry); err == nil {
			status.Details = []*anypb.Any{detail}
		}
	}
	h := headers{b: appendStatus(b, http.StatusOK), field: deniedHeaders}
	h.text("content-type", contentType)
	h.number("grpc-status", int64(refusal.code))
	h.text("grpc-message", status.Message)
	if details, err := proto.Marshal(status); err == nil {
		h.text("grpc-status-details-bin", base64.RawStdEncoding.EncodeToString(details))
	}
	return o.appendRefusalHeaders(h, answer).b
}
