package authz

import (
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

func TestContentTypesOfGRPC(t *testing.T) {
	for _, tt := range []struct{ contentType, want string }{
		{"application/grpc", "application/grpc"},
		{"application/grpc+proto", "application/grpc"},
		{"application/grpc;charset=utf-8", "application/grpc"},
		{"Application/GRPC+JSON", "application/grpc"},
		{"application/grpc+\r\nx-evil: 1", "application/grpc"},
		{"application/grpc-web", "application/grpc-web"},
		{"application/grpc-web+proto", "application/grpc-web+proto"},
		{"application/grpc-web-text", "application/grpc-web-text"},
		{"application/grpc-web-text+proto", "application/grpc-web-text+proto"},
		{"APPLICATION/gRPC-Web;v=1", "APPLICATION/gRPC-Web;v=1"},
		{"application/grpc-web+\r\nx-evil: 1", "application/grpc-web"},
		{"application/grpc-web-text+\xff", "application/grpc-web-text"},
		{"application/grpc-web;\x7f", "application/grpc-web"},
		{"application/grpcx", ""},
		{"application/grpc-", ""},
		{"application/grpc-websocket", ""},
		{"application/grpc-web-texture", ""},
		{"application/grpc,application/json", ""},
		{"application/json", ""},
		{"application/", ""},
		{"", ""},
	} {
		got, ok := grpcContentType(&rules.Request{Headers: []rules.Header{{Name: "accept"}, {Name: "content-type", Value: tt.contentType}}})
		if ok != (tt.want != "") || ok && got != tt.want {
			t.Errorf("%q: %q, %v; want %q", tt.contentType, got, ok, tt.want)
		}
	}
	if _, ok := grpcContentType(&rules.Request{}); ok {
		t.Error("a request without content-type is no gRPC")
	}
}

// D107
func TestRefusalsOfGRPC(t *testing.T) {
	limit := rules.Rule{Name: "a", Limit: logLimit(1, time.Minute), Cost: 1}
	deny := rules.Rule{Name: "d", Action: rules.Deny}
	outage := rules.Rule{Name: "o", Limit: logLimit(1, time.Minute), Cost: 1, OnStoreError: rules.Refuse}
	for _, tt := range []struct {
		name    string
		rule    rules.Rule
		store   Store
		code    string
		message string
		wait    time.Duration
	}{
		{"limit", limit, scriptedStore{"a": {RetryAfter: 6100 * time.Millisecond}}, "8", "rate limited, retry in 7 s", 7 * time.Second},
		{"limit that never passes", limit, scriptedStore{"a": {RetryAfter: limiter.Never}}, "8", "rate limited", 0},
		{"deny rule", deny, &countingStore{}, "7", "denied", 0},
		{"outage", outage, &countingStore{err: errors.New("gone")}, "14", "unavailable, retry in 1 s", time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, tt.store, Answer{XRateLimit: true, Status: 418}, tt.rule)
			got := f.check(get("/", "content-type", "application/grpc"))
			denied := got.GetDeniedResponse()
			if got.GetStatus().GetCode() != 8 || denied.GetStatus().GetCode() != 200 || denied.GetBody() != "" {
				t.Errorf("got %v", got)
			}
			if code, message := headerOf(got, "grpc-status"), headerOf(got, "grpc-message"); code != tt.code || message != tt.message {
				t.Errorf("grpc-status %s, grpc-message %s", code, message)
			}
			status, wait := details(t, headerOf(got, "grpc-status-details-bin"))
			if status.GetMessage() != tt.message || wait != tt.wait {
				t.Errorf("details %v", status)
			}
			if (headerOf(got, "retry-after") != "") != (tt.wait > 0) || (headerOf(got, "x-ratelimit-limit") != "") != (tt.code == "8") {
				t.Errorf("headers %v", headerMap(got))
			}
		})
	}
}

func TestAnAllowedGRPCRequestGetsPlainHeaders(t *testing.T) {
	f := newFixture(t, &countingStore{}, bothFamilies, rules.Rule{Name: "a", Limit: logLimit(1, time.Minute), Cost: 1})
	got := f.check(get("/", "content-type", "application/grpc"))
	if !allowed(got) || headerOf(got, "grpc-status") != "" || headerOf(got, "x-ratelimit-remaining") != "0" {
		t.Errorf("got %v", got)
	}
}

// details decodes grpc-status-details-bin: the status and the wait in it, 0 when there is none.
func details(t testing.TB, text string) (*statuspb.Status, time.Duration) {
	t.Helper()
	data, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	status := &statuspb.Status{}
	if err := proto.Unmarshal(data, status); err != nil {
		t.Fatal(err)
	}
	if len(status.GetDetails()) == 0 {
		return status, 0
	}
	retry := &errdetails.RetryInfo{}
	if err := status.GetDetails()[0].UnmarshalTo(retry); err != nil {
		t.Fatal(err)
	}
	return status, retry.GetRetryDelay().AsDuration()
}
