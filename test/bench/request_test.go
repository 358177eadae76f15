package main

import (
	"strings"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/proto"
)

func TestARequestIsThatOfItsClientEverywhere(t *testing.T) {
	for _, f := range []form{headersMap, headerMap} {
		r, err := newRequest(f, trendingPath)
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			client  int
			address string
		}{
			{0, "110.100.100.100"},
			{1, "110.100.100.101"},
			{4711, "110.100.147.111"},
			{maxClients - 1, "110.199.199.199"},
		} {
			own := r.clone()
			own.from(tt.client)
			check := new(authv3.CheckRequest)
			if err := proto.Unmarshal(own.bytes, check); err != nil {
				t.Fatalf("%s, client %d: %v", f, tt.client, err)
			}
			if got := check.GetAttributes().GetSource().GetAddress().GetSocketAddress().GetAddress(); got != tt.address {
				t.Errorf("%s, client %d: peer %s, want %s", f, tt.client, got, tt.address)
			}
			headers := headersOf(check)
			if len(headers) != 18 {
				t.Errorf("%s: %d headers, want 18", f, len(headers))
			}
			for name, want := range map[string]string{
				":path": trendingPath, "x-forwarded-for": tt.address, "x-envoy-external-address": tt.address, "x-api-key": "key-" + tt.address,
			} {
				if headers[name] != want {
					t.Errorf("%s, client %d: %s is %q, want %q", f, tt.client, name, headers[name], want)
				}
			}
		}
		if !strings.Contains(string(r.bytes), placeholder) {
			t.Errorf("%s: a copy shares the bytes of its original", f)
		}
	}
}

func headersOf(check *authv3.CheckRequest) map[string]string {
	http := check.GetAttributes().GetRequest().GetHttp()
	headers := http.GetHeaders()
	for _, h := range http.GetHeaderMap().GetHeaders() {
		if headers == nil {
			headers = map[string]string{}
		}
		headers[h.GetKey()] = string(h.GetRawValue())
	}
	return headers
}
