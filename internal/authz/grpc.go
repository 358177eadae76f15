package authz

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
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

// deniedGRPC is the refusal of a gRPC request. Envoy would make UNAVAILABLE of a 429, which clients retry at once, and a
// body would take the message's place: so HTTP says 200, and the status is in the headers, which become trailers.
func (o *outcome) deniedGRPC(answer Answer, contentType string) *authv3.DeniedHttpResponse {
	refusal := o.refusal(answer)
	status := &statuspb.Status{Code: int32(refusal.code), Message: refusal.message}
	if seconds, ok := o.retryAfter(); ok {
		status.Message += ", retry in " + strconv.FormatInt(seconds, 10) + " s"
		retry := &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(seconds) * time.Second)}
		if detail, err := anypb.New(retry); err == nil {
			status.Details = []*anypb.Any{detail}
		}
	}
	headers := []*corev3.HeaderValueOption{
		header("content-type", contentType),
		header("grpc-status", strconv.Itoa(int(refusal.code))),
		header("grpc-message", status.Message),
	}
	if details, err := proto.Marshal(status); err == nil {
		headers = append(headers, header("grpc-status-details-bin", base64.RawStdEncoding.EncodeToString(details)))
	}
	return &authv3.DeniedHttpResponse{
		Status:  &typev3.HttpStatus{Code: typev3.StatusCode_OK},
		Headers: o.refusalHeaders(headers, answer),
	}
}
