package rules

import (
	"net/netip"
	"strings"
)

// AddressSource is where the client's address comes from. The zero value is the peer.
type AddressSource uint8

// The sources.
const (
	FromPeer    AddressSource = iota // the other end of the TCP connection to Envoy
	FromHeaders                      // headers that trusted proxies wrote
	FromEnvoy                        // what Envoy itself takes for the client (gRPC metadata)
)

// ClientIP says how a request's client address is found. The zero value takes the peer.
type ClientIP struct {
	From AddressSource
	// Trusted are the addresses of the proxies whose x-forwarded-for entries are believed. For FromHeaders alone.
	Trusted []netip.Prefix
	// Headers are asked in order; the first that gives an address is believed. Without any the peer is the client. For
	// FromHeaders alone.
	Headers []AddressHeader
	// IPv6Prefix is how many bits of an IPv6 address tell one client from another in keys: 32 … 128; 0 counts as 64.
	IPv6Prefix int
}

// AddressHeader is a header that carries the client's address.
type AddressHeader struct {
	// Name in lower case. x-forwarded-for is a list that every proxy appends to; any other holds one address.
	Name string
	// From are the proxies from which a header with one address is believed; nil for x-forwarded-for.
	From []netip.Prefix
}

// ForwardedFor is the header to which every proxy appends the address that it saw.
const ForwardedFor = "x-forwarded-for"

// Resolve returns the client's address, without zone and with IPv4 unmapped; the zero Addr when it is unknown.
// untrustedHeader says that one of the headers with one address was there but did not come from where it is believed.
func (c *ClientIP) Resolve(req *Request) (client netip.Addr, untrustedHeader bool) {
	switch {
	case c.From == FromEnvoy:
		client, _ = parseAddress(req.EnvoyClient)
		return client, false
	case c.From == FromHeaders && req.HTTP:
		return c.fromHeaders(req, plainAddress(req.Peer))
	}
	return plainAddress(req.Peer), false
}

func (c *ClientIP) fromHeaders(req *Request, peer netip.Addr) (client netip.Addr, untrustedHeader bool) {
	forwarded, edge := c.walk(req, peer)
	for i := range c.Headers {
		header := &c.Headers[i]
		if header.Name == ForwardedFor {
			if !client.IsValid() {
				client = forwarded
			}
			continue
		}
		value, lines := req.header(header.Name)
		switch {
		case lines == 0:
		case !containsAddress(header.From, edge):
			untrustedHeader = true
		case lines == 1 && !client.IsValid():
			client, _ = parseAddress(value)
		}
	}
	if !client.IsValid() {
		client = peer
	}
	return client, untrustedHeader
}

// walk goes from the peer along x-forwarded-for, right to left, as long as the addresses are trusted. edge is the last
// trusted one; the zero Addr when not even the peer is. client is the first that is not, the left-most if all are, the
// peer if a hop cannot be read: what stands left of such a hop anybody may have written. client is the zero Addr when the
// header says nothing.
func (c *ClientIP) walk(req *Request, peer netip.Addr) (client, edge netip.Addr) {
	if !containsAddress(c.Trusted, peer) {
		return netip.Addr{}, netip.Addr{}
	}
	hops, _ := req.header(ForwardedFor)
	if strings.Trim(hops, " \t") == "" {
		return netip.Addr{}, peer
	}
	edge = peer
	for more := true; more; {
		comma := strings.LastIndexByte(hops, ',')
		hop, ok := parseAddress(hops[comma+1:])
		switch {
		case !ok:
			return peer, edge
		case !containsAddress(c.Trusted, hop):
			return hop, edge
		}
		edge = hop
		more = comma >= 0
		hops = hops[:max(comma, 0)]
	}
	return edge, edge
}

// group returns the address that stands for a client in keys: all addresses that one IPv6 client may use become one.
func (c *ClientIP) group(client netip.Addr) netip.Addr {
	if client.Is4() {
		return client
	}
	bits := c.IPv6Prefix
	if bits == 0 {
		bits = 64
	}
	prefix, err := client.Prefix(bits)
	if err != nil {
		return client
	}
	return prefix.Addr()
}
