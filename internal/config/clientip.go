package config

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

var addressSources = []string{"peer", "headers", "envoy"}

const (
	// connectingIP is Cloudflare's own header: without ranges of its own it is believed from Cloudflare's.
	connectingIP  = "cf-connecting-ip"
	cloudflareSet = "cloudflare"
)

func (f fields) clientIP(c *rules.ClientIP) {
	f, ok := f.section("client_ip", clientSection)
	if !ok {
		return
	}
	if v, ok := f.get("trusted_proxies"); ok {
		c.Trusted = v.ranges(0)
	}
	if v, ok := f.get("from"); ok {
		i, _ := v.choice(addressSources)
		c.From = rules.AddressSource(i)
		if c.From == rules.FromHeaders && len(c.Trusted) == 0 {
			v.warn("no header is ever believed without trusted_proxies, so every client has its peer's address, wanted "+
				"trusted_proxies: with the addresses of your proxies, or from: %s", addressSources[rules.FromPeer])
		}
	}
	if v, ok := f.get("headers"); ok {
		c.Headers = v.addressHeaders()
	}
	if v, ok := f.get("ipv6_prefix"); ok {
		n, _ := v.number(32, 128)
		c.IPv6Prefix = int(n)
	}
}

// ranges reads a list of addresses, CIDR ranges and named sets.
func (v value) ranges(least int) []netip.Prefix {
	names := slices.Sorted(maps.Keys(v.d.sets))
	want := "an address, a CIDR range like 10.0.0.0/8 or a named set (" + oneOf(names) + ")"
	entries, _ := v.list(least, "a list, each entry "+want)
	var ranges []netip.Prefix
	for _, entry := range entries {
		text, ok := entry.text(want)
		if !ok {
			continue
		}
		if set, ok := v.d.sets[text]; ok {
			ranges = append(ranges, set...)
		} else if prefix, err := rules.ParsePrefix(text); err == nil {
			ranges = append(ranges, prefix)
		} else if setName.MatchString(text) {
			entry.fail("%s is no named set, wanted %s%s", quote(text), want, didYouMean(nearest(text, names)))
		} else {
			entry.fail("%s", oneLine(err))
		}
	}
	return ranges
}

// addressHeaders reads the list of headers that may name the client.
func (v value) addressHeaders() []rules.AddressHeader {
	entries, _ := v.list(1, "a list of at least one header, like [x-forwarded-for]")
	var headers []rules.AddressHeader
	for _, entry := range entries {
		h, ok := entry.addressHeader()
		if !ok {
			continue
		}
		if slices.ContainsFunc(headers, func(other rules.AddressHeader) bool { return other.Name == h.Name }) {
			entry.fail("%s is here twice, wanted each header once", quote(h.Name))
			continue
		}
		headers = append(headers, h)
	}
	return headers
}

// addressHeader reads a header's name, alone or with the ranges from which it is believed.
func (v value) addressHeader() (h rules.AddressHeader, ok bool) {
	name, from, hasFrom := v, value{}, false
	if v.isMapping() {
		f, _ := v.fields(addressSection)
		if name, ok = f.require("name", "the name of a header"); !ok {
			return h, false
		}
		from, hasFrom = f.get("from")
	}
	if h.Name, ok = name.headerName(); !ok {
		return h, false
	}
	switch {
	case h.Name == rules.ForwardedFor && hasFrom:
		from.fail("does not go with %s, which trusted_proxies decides; wanted it left out", rules.ForwardedFor)
		return h, false
	case h.Name == rules.ForwardedFor:
	case hasFrom:
		h.From = from.ranges(1)
	case h.Name == connectingIP && v.d.sets[cloudflareSet] != nil:
		h.From = v.d.sets[cloudflareSet]
	default:
		v.fail("%s needs the ranges from which it is believed, wanted {name: %s, from: [10.0.0.0/8]} with those of your proxies",
			quote(h.Name), h.Name)
		return h, false
	}
	return h, true
}

// headerName reads the name of a header, in any case.
func (v value) headerName() (name string, ok bool) {
	text, ok := v.text("the name of a header")
	if !ok {
		return "", false
	}
	name, err := rules.ParseHeaderName(text)
	if err != nil {
		v.fail("%s", oneLine(err))
	}
	return name, err == nil
}
