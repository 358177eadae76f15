package rules

import (
	"strings"
	"testing"
)

func TestHeadersOfAnyLengthAreKnownToBeRead(t *testing.T) {
	for _, length := range []int{1, 10, 62, 63, 64, 80} {
		name := strings.Repeat("x", length)
		key, err := ParseAttribute("header." + name)
		if err != nil {
			t.Fatal(err)
		}
		reads := NewSet([]Rule{{Name: "a", Key: []Attribute{key}}}, ClientIP{}).Reads()
		if !reads.Header(name) || !reads.Header("content-type") {
			t.Errorf("%d bytes: %s or content-type is not read", length, name)
		}
		for _, other := range []string{"", "y", strings.Repeat("y", length), name + "x", name[1:]} {
			if reads.Header(other) {
				t.Errorf("%d bytes: %q is read", length, other)
			}
		}
	}
}

func TestEnvoysIdeaOfTheClientIsReadOnlyWhereRulesGoByIt(t *testing.T) {
	for from, want := range map[AddressSource]bool{FromPeer: false, FromHeaders: false, FromEnvoy: true} {
		if reads := NewSet(nil, ClientIP{From: from}).Reads(); reads.EnvoyClient != want {
			t.Errorf("source %d: %v, want %v", from, reads.EnvoyClient, want)
		}
	}
}
