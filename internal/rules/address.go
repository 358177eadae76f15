package rules

import (
	"fmt"
	"net/netip"
	"strings"
)

// ParsePrefix reads a range of addresses: CIDR or a single address. Bits beyond the prefix are cleared; an IPv4-mapped
// IPv6 range is the IPv4 range.
func ParsePrefix(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is no address range, wanted an address such as 192.0.2.1 or a range such as 192.0.2.0/24 or 2001:db8::/32", text)
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	if prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
	}
	return prefix.Masked(), nil
}

// parseAddress reads an address as proxies write it: with or without a port, brackets or a zone. ok is false, and addr
// the zero Addr, when it is none.
func parseAddress(text string) (addr netip.Addr, ok bool) {
	text = strings.Trim(text, " \t")
	addr, err := netip.ParseAddr(text)
	if err != nil {
		if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
			text += ":0"
		}
		withPort, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = withPort.Addr()
	}
	return plainAddress(addr), true
}

// plainAddress drops what does not tell one client from another: the zone, and the mapping of IPv4 into IPv6.
func plainAddress(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

func containsAddress(ranges []netip.Prefix, addr netip.Addr) bool {
	for i := range ranges {
		if ranges[i].Contains(addr) {
			return true
		}
	}
	return false
}
