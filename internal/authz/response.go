package authz

import (
	"net/http"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

const statusLimited = http.StatusTooManyRequests

// response is the outcome as Envoy takes it. Envoy goes by the outer status: unset or 0 it allows, even beside a denied
// response; any other code refuses.
func (o *outcome) response(answer Answer, request *rules.Request) *authv3.CheckResponse {
	response := &authv3.CheckResponse{DynamicMetadata: o.metadata()}
	if o.verdict.Allowed {
		response.Status = &statuspb.Status{Code: int32(codes.OK)}
		response.HttpResponse = &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{
			ResponseHeadersToAdd: overwriting(o.limitHeaders(nil, answer)),
		}}
		return response
	}
	var denied *authv3.DeniedHttpResponse
	if contentType, ok := grpcContentType(request); ok {
		denied = o.deniedGRPC(answer, contentType)
	} else {
		denied = o.denied(answer)
	}
	response.Status = &statuspb.Status{Code: int32(codes.ResourceExhausted)}
	response.HttpResponse = &authv3.CheckResponse_DeniedResponse{DeniedResponse: denied}
	return response
}

// denied is the refusal of a plain HTTP request.
func (o *outcome) denied(answer Answer) *authv3.DeniedHttpResponse {
	refusal := o.refusal(answer)
	body := `{"error":"` + refusal.name + `"}`
	if seconds, ok := o.retryAfter(); ok {
		body = `{"error":"` + refusal.name + `","retry_after_seconds":` + strconv.FormatInt(seconds, 10) + `}`
	}
	headers := []*corev3.HeaderValueOption{header("content-type", "application/json")}
	return &authv3.DeniedHttpResponse{
		Status:  &typev3.HttpStatus{Code: typev3.StatusCode(refusal.status)},
		Headers: o.refusalHeaders(headers, answer),
		Body:    body,
	}
}

// refusal is how one kind of refusal is told to a client.
type refusal struct {
	status  int        // HTTP
	name    string     // in the JSON body
	code    codes.Code // gRPC
	message string     // gRPC
}

func (o *outcome) refusal(answer Answer) refusal {
	switch o.verdict.Reason {
	case limiter.ReasonRule, limiter.ReasonKeyMissing:
		return refusal{http.StatusForbidden, "denied", codes.PermissionDenied, "denied"}
	case limiter.ReasonStore:
		return refusal{http.StatusServiceUnavailable, "unavailable", codes.Unavailable, "unavailable"}
	}
	return refusal{answer.Status, "rate_limited", codes.ResourceExhausted, "rate limited"}
}
