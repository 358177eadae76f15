package authz

import (
	"net/http"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

const statusLimited = http.StatusTooManyRequests

// The numbers of the fields of an answer, from Envoy's .proto files, by their messages.
const (
	responseStatus, responseDenied, responseOK, responseMetadata = 1, 2, 3, 4

	statusCode = 1

	okHeadersToAdd = 6

	deniedStatus, deniedHeaders, deniedBody = 1, 2, 3
)

// appendResponse appends the outcome as Envoy takes it, a CheckResponse. Envoy goes by the outer status: unset or 0 it allows,
// even beside a denied response; any other code refuses.
func (o *outcome) appendResponse(b []byte, answer *Answer, request *rules.Request) []byte {
	b = open(b, responseStatus)
	if o.verdict.Allowed {
		b = open(b, responseOK)
		begin := len(b)
		b = o.appendLimits(headers{b, okHeadersToAdd, true}, answer).b
		b = shut(b, begin)
	} else {
		begin := len(b)
		b = appendNumber(b, statusCode, uint64(codes.ResourceExhausted))
		b = shut(b, begin)
		b = open(b, responseDenied)
		begin = len(b)
		if contentType, ok := grpcContentType(request); ok {
			b = o.appendDeniedGRPC(b, answer, contentType)
		} else {
			b = o.appendDenied(b, answer)
		}
		b = shut(b, begin)
	}
	b = open(b, responseMetadata)
	begin := len(b)
	b = o.appendMetadata(b)
	return shut(b, begin)
}

// appendDenied appends the refusal of a plain HTTP request, a DeniedHttpResponse.
func (o *outcome) appendDenied(b []byte, answer *Answer) []byte {
	refusal := o.refusal(answer)
	b = appendStatus(b, refusal.status)
	h := headers{b: b, field: deniedHeaders}
	h.text("content-type", "application/json")
	b = o.appendRefusalHeaders(h, answer).b
	b = open(b, deniedBody)
	begin := len(b)
	b = append(b, `{"error":"`...)
	b = append(b, refusal.name...)
	b = append(b, '"')
	if seconds, ok := o.retryAfter(); ok {
		b = append(b, `,"retry_after_seconds":`...)
		b = strconv.AppendInt(b, seconds, 10)
	}
	return shut(append(b, '}'), begin)
}

// appendStatus appends an HTTP status to a DeniedHttpResponse.
func appendStatus(b []byte, status int) []byte {
	b = open(b, deniedStatus)
	begin := len(b)
	return shut(appendNumber(b, statusCode, uint64(status)), begin)
}

// refusal is how one kind of refusal is told to a client.
type refusal struct {
	status  int        // HTTP
	name    string     // in the JSON body
	code    codes.Code // gRPC
	message string     // gRPC
}

func (o *outcome) refusal(answer *Answer) refusal {
	switch o.verdict.Reason {
	case limiter.ReasonRule, limiter.ReasonKeyMissing:
		return refusal{http.StatusForbidden, "denied", codes.PermissionDenied, "denied"}
	case limiter.ReasonStore:
		return refusal{http.StatusServiceUnavailable, "unavailable", codes.Unavailable, "unavailable"}
	}
	return refusal{answer.Status, "rate_limited", codes.ResourceExhausted, "rate limited"}
}
