package config

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheBuiltinSetOfCloudflareIsComplete(t *testing.T) {
	ranges, problems := parseSet("cloudflare.txt", cloudflare)
	if problems != nil || len(ranges) != 22 || len(BuiltinSets()["cloudflare"]) != 22 {
		t.Fatal(len(ranges), problems)
	}
	in := func(address string) bool {
		for _, r := range ranges {
			if r.Contains(netip.MustParseAddr(address)) {
				return true
			}
		}
		return false
	}
	if !in("104.16.0.1") || !in("2606:4700::1") || in("192.0.2.1") {
		t.Error("the ranges are not Cloudflare's")
	}
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAFolderOfSetsAddsToTheBuiltinOnesAndReplacesThem(t *testing.T) {
	dir := folder(t, map[string]string{
		"cloudflare.txt": "# newer\n192.0.2.0/24 # one range\r\n\n\t2001:db8::/32\n",
		"office.txt":     "203.0.113.7",
		"README.md":      "not a set",
	})
	sets, err := ReadSets(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := Parse("a.yaml", []byte("client_ip: {trusted_proxies: [cloudflare, office], headers: [cf-connecting-ip]}"), sets)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(texts(c.ClientIP.Trusted), " "); got != "192.0.2.0/24 2001:db8::/32 203.0.113.7/32" {
		t.Errorf("trusted are %s", got)
	}
	if got := strings.Join(texts(c.ClientIP.Headers[0].From), " "); got != "192.0.2.0/24 2001:db8::/32" {
		t.Errorf("cf-connecting-ip is believed from %s", got)
	}
	if len(BuiltinSets()["cloudflare"]) != 22 {
		t.Error("the builtin set has changed")
	}
}

func TestEveryFaultInAFolderOfSetsIsSaidWithItsLine(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.txt": "10.0.0.0/8\n  10.0.0.0/33\nnonsense # comment\n", "b.txt": "# nothing\n", "C.txt": "10.0.0.0/8\n",
	})
	_, err := ReadSets(dir)
	if err == nil {
		t.Fatal("there is no error")
	}
	got := strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")
	want := `C.txt:1:1: the file's name is no name for a set, wanted NAME.txt with a NAME of lower-case letters, digits and hyphens
a.txt:2:3: "10.0.0.0/33" is no address range, wanted an address such as 192.0.2.1 or a range such as 192.0.2.0/24 or 2001:db8::/32
a.txt:3:1: "nonsense" is no address range, wanted an address such as 192.0.2.1 or a range such as 192.0.2.0/24 or 2001:db8::/32
b.txt:1:1: the set is empty, wanted one address or CIDR range a line`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := ReadSets(filepath.Join(dir, "missing")); !os.IsNotExist(err) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
