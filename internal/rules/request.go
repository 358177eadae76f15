// Package rules holds the rules: what a request must look like for a rule to apply, which bucket it then spends from, and
// who the client is. It does no I/O and knows neither Envoy nor Redis.
package rules

import "net/netip"

// Header is one header line. Name is lower case; Value is the bytes as they came.
type Header struct{ Name, Value string }

// Request is what the rules may know of one request: a plain value, taken from the wire as it is. The zero value is a
// connection of which nothing is known.
type Request struct {
	// HTTP says that there is an HTTP request. Without it (an L4 check) Method, Host, Path and Headers mean nothing, and
	// every condition on HTTP fails.
	HTTP bool
	// Method, Host and Path are raw; Path has the query string with it.
	Method, Host, Path string
	// Headers are the header lines in their order, a repeated one apart or joined with commas.
	Headers []Header
	// Peer is the address at the other end of the TCP connection to Envoy; the zero Addr when it is unknown.
	Peer netip.Addr
	// EnvoyClient is the client address as Envoy itself sees it (gRPC metadata x-ratelimitd-client); "" when not sent.
	EnvoyClient string
	// Principal is who the client's certificate says it is; "" without one.
	Principal string
	// Extensions are what Envoy's configuration says about the route (context_extensions); it may be nil.
	Extensions map[string]string
	// Metadata is what Envoy's other filters say about the request; nil when there is none.
	Metadata Metadata
}
