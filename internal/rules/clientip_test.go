package rules

import (
	"net/netip"
	"strings"
	"testing"
)

var (
	internal   = prefixes("10.0.0.0/8")
	cloudflare = prefixes("173.245.48.0/20", "2400:cb00::/32")
)

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, must(ParsePrefix(text)))
	}
	return list
}

type clientCase struct {
	peer      string
	headers   []string // "name: value"
	want      string   // "" for unknown
	untrusted bool
}

func testClients(t *testing.T, source ClientIP, cases []clientCase) {
	t.Helper()
	for _, c := range cases {
		req := newRequest("/", c.headers...)
		req.Peer = netip.Addr{}
		if c.peer != "" {
			req.Peer = netip.MustParseAddr(c.peer)
		}
		var want netip.Addr
		if c.want != "" {
			want = netip.MustParseAddr(c.want)
		}
		if got, untrusted := source.Resolve(req); got != want || untrusted != c.untrusted {
			t.Errorf("peer %q, %q: %v, untrusted %v; want %q, %v", c.peer, c.headers, got, untrusted, c.want, c.untrusted)
		}
	}
}

func TestWithFromPeerTheSocketAddressIsTheClient(t *testing.T) { // D60, ENVOY.md §1.1
	testClients(t, ClientIP{Trusted: internal, Headers: []AddressHeader{{Name: "x-forwarded-for"}, {Name: "cf-connecting-ip"}}}, []clientCase{
		{"203.0.113.9", nil, "203.0.113.9", false},
		{"10.0.0.5", []string{"x-forwarded-for: 8.8.8.8", "cf-connecting-ip: 9.9.9.9"}, "10.0.0.5", false},
		{"::ffff:203.0.113.9", nil, "203.0.113.9", false},
		{"fe80::1%eth0", nil, "fe80::1", false},
		{"", []string{"x-forwarded-for: 8.8.8.8"}, "", false}, // a Unix socket
	})
}

func TestForwardedForIsWalkedFromTheRightOverTrustedProxies(t *testing.T) { // D39, D41, D43, D51, D60
	source := ClientIP{From: FromHeaders, Trusted: internal, Headers: []AddressHeader{{Name: "x-forwarded-for"}}}
	xff := func(lines ...string) (headers []string) {
		for _, line := range lines {
			headers = append(headers, "x-forwarded-for: "+line)
		}
		return headers
	}
	testClients(t, source, []clientCase{
		// From an untrusted peer nothing is believed.
		{"198.51.100.7", xff("8.8.8.8"), "198.51.100.7", false},
		{"", xff("8.8.8.8"), "", false},
		// The first untrusted hop from the right is the client, whatever stands left of it.
		{"10.0.0.5", xff("1.1.1.1, 203.0.113.9"), "203.0.113.9", false},
		{"10.0.0.5", xff("1.1.1.2, 203.0.113.9"), "203.0.113.9", false},
		{"10.0.0.5", xff("1.1.1.1, 203.0.113.9, 10.0.0.3"), "203.0.113.9", false},
		{"10.0.0.5", xff("unknown, 203.0.113.9, 10.0.0.3"), "203.0.113.9", false},
		{"::ffff:10.0.0.5", xff("203.0.113.9, ::ffff:10.0.0.3"), "203.0.113.9", false},
		// The lines are one list.
		{"10.0.0.5", xff("1.1.1.1", "203.0.113.9", "10.0.0.3"), "203.0.113.9", false},
		{"10.0.0.5", xff("1.1.1.1, 203.0.113.9", "10.0.0.3, 10.0.0.4"), "203.0.113.9", false},
		// All trusted: the left-most.
		{"10.0.0.5", xff("10.1.1.1, 10.0.0.3"), "10.1.1.1", false},
		{"10.0.0.5", xff("10.0.0.5"), "10.0.0.5", false},
		// No hops: the peer.
		{"10.0.0.5", nil, "10.0.0.5", false},
		{"10.0.0.5", xff(""), "10.0.0.5", false},
		{"10.0.0.5", xff(" "), "10.0.0.5", false},
		// A hop that cannot be read: the peer.
		{"10.0.0.5", xff("a"), "10.0.0.5", false},
		{"10.0.0.5", xff("8.8.8.8, b"), "10.0.0.5", false},
		{"10.0.0.5", xff("x y z, 10.0.0.1"), "10.0.0.5", false},
		{"10.0.0.5", xff("unknown"), "10.0.0.5", false},
		{"10.0.0.5", xff("8.8.8.8,"), "10.0.0.5", false},
		{"10.0.0.5", xff("8.8.8.8,,10.0.0.1"), "10.0.0.5", false},
		{"10.0.0.5", xff("8.8.8.8", ""), "10.0.0.5", false},
		{"10.0.0.5", xff("8.8.8.8:http"), "10.0.0.5", false},
		{"10.0.0.5", xff("[8.8.8.8]"), "10.0.0.5", false},
		{"10.0.0.5", xff("[2001:db8::1"), "10.0.0.5", false},
		// Ports, brackets, zones and mapping do not make another client.
		{"10.0.0.5", xff("203.0.113.9:52241"), "203.0.113.9", false},
		{"10.0.0.5", xff("203.0.113.9:52242, 10.0.0.3:80"), "203.0.113.9", false},
		{"10.0.0.5", xff("[2001:db8::1]:443"), "2001:db8::1", false},
		{"10.0.0.5", xff("[2001:DB8:0::1]"), "2001:db8::1", false},
		{"10.0.0.5", xff("fe80::1%eth0"), "fe80::1", false},
		{"10.0.0.5", xff("[fe80::1%eth0]:1"), "fe80::1", false},
		{"10.0.0.5", xff("::ffff:203.0.113.9"), "203.0.113.9", false},
	})
}

func TestAHeaderWithOneAddressIsBelievedOnlyFromItsOwnEdge(t *testing.T) { // D42
	source := ClientIP{From: FromHeaders, Trusted: append(internal, cloudflare...), Headers: []AddressHeader{
		{Name: "cf-connecting-ip", From: cloudflare}, {Name: "x-forwarded-for"},
	}}
	testClients(t, source, []clientCase{
		{"173.245.48.1", []string{"cf-connecting-ip: 9.9.9.9"}, "9.9.9.9", false},
		{"173.245.48.1", []string{"cf-connecting-ip: 2001:db8::1"}, "2001:db8::1", false},
		// The edge stands behind another trusted proxy.
		{"10.0.0.5", []string{"cf-connecting-ip: 9.9.9.9", "x-forwarded-for: 9.9.9.9, 173.245.48.1"}, "9.9.9.9", false},
		{"10.0.0.5", []string{"cf-connecting-ip: 9.9.9.9", "x-forwarded-for: x, 173.245.48.1"}, "9.9.9.9", false},
		// Not from the edge: the client wrote it.
		{"198.51.100.7", []string{"cf-connecting-ip: 9.9.9.9"}, "198.51.100.7", true},
		{"10.0.0.5", []string{"cf-connecting-ip: 9.9.9.9"}, "10.0.0.5", true},
		{"10.0.0.5", []string{"cf-connecting-ip: 9.9.9.9", "x-forwarded-for: 173.245.48.1, 198.51.100.7"}, "198.51.100.7", true},
		{"", []string{"cf-connecting-ip: 9.9.9.9"}, "", true},
		// Believed, but it gives no address: the next header.
		{"173.245.48.1", []string{"cf-connecting-ip: 9.9.9.9", "cf-connecting-ip: 9.9.9.8", "x-forwarded-for: 203.0.113.9"}, "203.0.113.9", false},
		{"173.245.48.1", []string{"cf-connecting-ip: 9.9.9.9, 9.9.9.8", "x-forwarded-for: 203.0.113.9"}, "203.0.113.9", false},
		{"173.245.48.1", []string{"cf-connecting-ip: nobody", "x-forwarded-for: 203.0.113.9"}, "203.0.113.9", false},
		{"173.245.48.1", []string{"cf-connecting-ip: "}, "173.245.48.1", false},
		{"173.245.48.1", nil, "173.245.48.1", false},
	})

	source.Headers = []AddressHeader{{Name: "x-forwarded-for"}, {Name: "cf-connecting-ip", From: cloudflare}, {Name: "x-real-ip"}}
	testClients(t, source, []clientCase{
		{"173.245.48.1", []string{"cf-connecting-ip: 9.9.9.9", "x-forwarded-for: 203.0.113.9"}, "203.0.113.9", false},
		{"173.245.48.1", []string{"cf-connecting-ip: 9.9.9.9"}, "9.9.9.9", false},
		{"10.0.0.5", []string{"x-real-ip: 9.9.9.9"}, "10.0.0.5", true}, // a header without ranges is never believed
	})
}

func TestWithFromEnvoyOnlyItsMetadataNamesTheClient(t *testing.T) {
	source := ClientIP{From: FromEnvoy, Trusted: internal, Headers: []AddressHeader{{Name: "x-forwarded-for"}}}
	for sent, want := range map[string]string{
		"203.0.113.9":        "203.0.113.9",
		"203.0.113.9:4711":   "203.0.113.9",
		"::ffff:203.0.113.9": "203.0.113.9",
		"2001:DB8::7":        "2001:db8::7",
		"":                   "invalid IP",
		"/run/envoy.sock":    "invalid IP",
	} {
		req := newRequest("/", "x-forwarded-for: 8.8.8.8")
		req.EnvoyClient = sent
		if got, untrusted := source.Resolve(req); got.String() != want || untrusted {
			t.Errorf("%q: %v, %v, want %v", sent, got, untrusted, want)
		}
	}
}

func TestIPv6ClientsAreGroupedByPrefix(t *testing.T) { // D44
	for _, c := range []struct {
		bits         int
		client, want string
	}{
		{0, "2001:db8:1:2::20", "2001:db8:1:2::"},
		{64, "2001:db8:1:2::20", "2001:db8:1:2::"},
		{56, "2001:db8:1:2ff::20", "2001:db8:1:200::"},
		{128, "2001:db8:1:2::20", "2001:db8:1:2::20"},
		{32, "2001:db8:1:2::20", "2001:db8::"},
		{64, "203.0.113.9", "203.0.113.9"},
	} {
		source := ClientIP{IPv6Prefix: c.bits}
		if got := source.group(netip.MustParseAddr(c.client)).String(); got != c.want {
			t.Errorf("/%d of %s: %s, want %s", c.bits, c.client, got, c.want)
		}
	}
}

func TestAddressRangesAreReadWithHostBitsClearedAndUnmapped(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1":             "192.0.2.1/32",
		"192.0.2.1/24":          "192.0.2.0/24",
		"2001:db8::1":           "2001:db8::1/128",
		"2001:db8::/32":         "2001:db8::/32",
		"::ffff:192.0.2.1":      "192.0.2.1/32",
		"::ffff:192.0.2.1/104":  "192.0.0.0/8",
		"::/0":                  "::/0",
		"0.0.0.0/0":             "0.0.0.0/0",
		"::ffff:192.0.2.1/64":   "::/64",
		"2001:DB8:0:0:0::1/128": "2001:db8::1/128",
	} {
		if got, err := ParsePrefix(text); got.String() != want || err != nil {
			t.Errorf("ParsePrefix(%q) = %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "a", "192.0.2.1/33", "192.0.2", "fe80::1%eth0", "fe80::%eth0/64", "192.0.2.1:80", "cloudflare"} {
		if got, err := ParsePrefix(text); err == nil {
			t.Errorf("ParsePrefix(%q) = %v", text, got)
		}
	}
}

func FuzzResolve(f *testing.F) {
	f.Add("198.51.100.7", "8.8.8.8, 10.0.0.1", "9.9.9.9")
	source := ClientIP{From: FromHeaders, Trusted: append(internal, cloudflare...), Headers: []AddressHeader{
		{Name: "cf-connecting-ip", From: cloudflare}, {Name: "x-forwarded-for"},
	}}
	f.Fuzz(func(t *testing.T, peer, forwarded, single string) {
		req := newRequest("/", "x-forwarded-for: "+forwarded, "cf-connecting-ip: "+single)
		req.Peer, _ = netip.ParseAddr(peer)
		want := plainAddress(req.Peer)
		client, untrusted := source.Resolve(req)
		switch {
		case !containsAddress(source.Trusted, want):
			if client != want || !untrusted {
				t.Errorf("untrusted peer %q: client %v, untrusted header %v", peer, client, untrusted)
			}
		case !client.IsValid() || client.Is4In6() || client.Zone() != "":
			t.Errorf("trusted peer %q: client %v", peer, client)
		case containsAddress(cloudflare, want) || strings.Contains(forwarded, "173.245.") || strings.Contains(forwarded, ":"):
		default: // no Cloudflare edge can have been seen
			if !untrusted {
				t.Errorf("peer %q, %q: the header %q is believed", peer, forwarded, single)
			}
		}
	})
}
