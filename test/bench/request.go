package main

import (
	"bytes"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// form is how Envoy sends the headers of a request.
type form string

const (
	headersMap form = "headers"    // Envoy's default: a map of strings
	headerMap  form = "header_map" // what encode_raw_headers makes of it: a list with raw values
)

// placeholder is the client's address in a request that is not addressed yet. All addresses are as long, so that they can
// take its place in the encoded bytes.
const placeholder = "110.100.100.100"

// maxClients is how many addresses there are.
const maxClients = 1_000_000

// request is an encoded CheckRequest whose client can be changed.
type request struct {
	bytes []byte
	at    []int // where the client's address is
}

// newRequest returns what an Envoy asks about the request of a browser for a path.
func newRequest(f form, path string) (request, error) {
	http := &authv3.AttributeContext_HttpRequest{
		Id: "7254812096370236417", Method: "GET", Path: path, Host: "api.example.com", Scheme: "https", Protocol: "HTTP/1.1", Size: -1,
	}
	setHeaders(http, f, browserHeaders(path))
	check := &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source:      &authv3.AttributeContext_Peer{Address: socketAddress(placeholder, 40123)},
		Destination: &authv3.AttributeContext_Peer{Address: socketAddress("10.0.0.7", 8080)},
		Request:     &authv3.AttributeContext_Request{Time: timestamppb.Now(), Http: http},
	}}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(check)
	if err != nil {
		return request{}, fmt.Errorf("encode a request: %w", err)
	}
	r := request{bytes: encoded}
	for from := 0; ; {
		i := bytes.Index(encoded[from:], []byte(placeholder))
		if i < 0 {
			return r, nil
		}
		r.at = append(r.at, from+i)
		from += i + len(placeholder)
	}
}

// browserHeaders are 18, in the order in which Envoy has them.
func browserHeaders(path string) [][2]string {
	return [][2]string{
		{":authority", "api.example.com"}, {":path", path}, {":method", "GET"}, {":scheme", "https"},
		{"user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"},
		{"accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"},
		{"accept-language", "en-GB,en;q=0.5"}, {"accept-encoding", "gzip, deflate, br, zstd"},
		{"authorization", "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"},
		{"cookie", "sid=3f2e9d7a6b5c4d3e2f1a0b9c8d7e6f5a; theme=dark; consent=1"}, {"x-api-key", "key-" + placeholder},
		{"sec-fetch-mode", "navigate"}, {"sec-fetch-site", "none"}, {"priority", "u=0, i"},
		{"x-forwarded-for", placeholder}, {"x-forwarded-proto", "https"}, {"x-envoy-external-address", placeholder},
		{"x-request-id", "3c1e4f5a-9b8c-4d7e-8f6a-1b2c3d4e5f60"},
	}
}

func setHeaders(http *authv3.AttributeContext_HttpRequest, f form, headers [][2]string) {
	if f == headerMap {
		http.HeaderMap = &corev3.HeaderMap{}
		for _, h := range headers {
			http.HeaderMap.Headers = append(http.HeaderMap.Headers, &corev3.HeaderValue{Key: h[0], RawValue: []byte(h[1])})
		}
		return
	}
	http.Headers = map[string]string{}
	for _, h := range headers {
		http.Headers[h[0]] = h[1]
	}
}

func socketAddress(ip string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: ip, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

// clone returns a copy with bytes of its own.
func (r request) clone() request { return request{bytes.Clone(r.bytes), r.at} }

// from makes the request one of the n-th client, 0 … maxClients−1.
func (r request) from(n int) {
	for _, at := range r.at {
		address := r.bytes[at : at+len(placeholder)]
		rest := n
		for end := len(address); end > len("110."); end -= len(".100") {
			address[end-1], address[end-2] = byte('0'+rest%10), byte('0'+rest/10%10)
			rest /= 100
		}
	}
}
