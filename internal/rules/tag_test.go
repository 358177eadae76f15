package rules

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// hitOf is what the one rule of a set with tags asks for the request.
func hitOf(t *testing.T, r Rule, req *Request) limiter.Hit {
	t.Helper()
	hits := NewSet([]Rule{r}, ClientIP{}, WithTags()).Apply(req).Hits
	if len(hits) != 1 {
		t.Fatalf("%d hits", len(hits))
	}
	return hits[0]
}

func firstFour(text string) uint32 {
	sum := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint32(sum[:])
}

// everything is a request that lacks no attribute.
func everything() *Request {
	req := newRequest("/x?q=1", "a: v", "b: w", "cookie: c=2")
	req.Principal = "spiffe://x"
	req.Extensions = map[string]string{"e": "3"}
	req.Metadata = metadata{"f:n": "4"}
	return req
}

// D64: buckets of one client lie together, so that most requests are one trip.
func TestTheTagIsOfThePartThatBestNamesAClient(t *testing.T) {
	const client = "\x00\x00\x00\x09client_ip\x01\x00\x00\x00\x04\xcb\x00\x71\x09"
	for _, c := range []struct {
		key  []string
		part string
	}{
		{[]string{"query.q", "header.a", "client_ip", "principal"}, client},
		{[]string{"query.q", "header.a", "principal"}, "\x00\x00\x00\x09principal\x01\x00\x00\x00\x0aspiffe://x"},
		{[]string{"cookie.c", "header.b", "header.a"}, "\x00\x00\x00\x08header.b\x01\x00\x00\x00\x01w"},
		{[]string{"metadata.f:n", "cookie.c"}, "\x00\x00\x00\x08cookie.c\x01\x00\x00\x00\x012"},
		{[]string{"extension.e", "metadata.f:n"}, "\x00\x00\x00\x0cmetadata.f:n\x01\x00\x00\x00\x014"},
		{[]string{"query.q", "extension.e"}, "\x00\x00\x00\x0bextension.e\x01\x00\x00\x00\x013"},
		{[]string{"path", "query.q"}, "\x00\x00\x00\x07query.q\x01\x00\x00\x00\x011"},
		{[]string{"principal", "header.missing"}, "\x00\x00\x00\x09principal\x01\x00\x00\x00\x0aspiffe://x"},
		{[]string{"cookie.missing"}, client},
		{nil, "\x00\x00\x00\x01r"},
	} {
		if got, want := hitOf(t, perMinute("r", 5, c.key...), everything()).Tag, firstFour(c.part); got != want {
			t.Errorf("%v: tag %08x, want %08x, that of %q", c.key, got, want, c.part)
		}
	}
}

func TestWithoutAPartThatNamesAClientTheTagIsThatOfTheBucket(t *testing.T) {
	hit := hitOf(t, perMinute("r", 5, "host", "method", "path", "route"), everything())
	if want := binary.BigEndian.Uint32(hit.Key[:]); hit.Tag != want {
		t.Errorf("tag %08x, want %08x", hit.Tag, want)
	}
}

func TestAllWhoShareABucketShareItsTag(t *testing.T) {
	r := perMinute("r", 5, "header.missing")
	r.OnMissingKey = ShareBucket
	other := everything()
	other.Peer = netip.MustParseAddr("198.51.100.1")
	hit, again := hitOf(t, r, everything()), hitOf(t, r, other)
	if want := firstFour("\x00\x00\x00\x0eheader.missing\x03\x00\x00\x00\x00"); hit.Tag != want || again.Tag != want || hit.Key != again.Key {
		t.Errorf("%+v and %+v, want the tag %08x", hit, again, want)
	}
}

func TestOneClientsRulesShareATagAndOtherClientsHaveAnother(t *testing.T) {
	list := []Rule{perMinute("a", 5, "client_ip"), perMinute("b", 9, "route", "client_ip"), perMinute("c", 5, "header.missing")}
	s := NewSet(list, ClientIP{}, WithTags())
	other := everything()
	other.Peer = netip.MustParseAddr("2001:db8::1")
	hits, others := s.Apply(everything()).Hits, s.Apply(other).Hits
	for i := range list {
		if hits[i].Tag != hits[0].Tag || others[i].Tag != others[0].Tag || hits[i].Tag == others[i].Tag {
			t.Errorf("rule %s: tags %08x and %08x", list[i].Name, hits[i].Tag, others[i].Tag)
		}
	}
}

func TestTagsAreMadeOnlyWhenAskedForAndWithoutAllocation(t *testing.T) {
	list := []Rule{perMinute("a", 5, "client_ip"), perMinute("b", 5, "header.missing"), perMinute("c", 5), perMinute("d", 5, "path")}
	plain, tagged := NewSet(list, ClientIP{}), NewSet(list, ClientIP{}, WithTags())
	req := everything()
	for i, hit := range plain.Apply(req).Hits {
		want := hit
		want.Tag = tagged.Apply(req).Hits[i].Tag
		if got := tagged.Apply(req).Hits[i]; hit.Tag != 0 || got != want || got.Tag == 0 {
			t.Errorf("%+v, and with tags %+v", hit, got)
		}
	}
	without := testing.AllocsPerRun(100, func() { plain.Apply(req) })
	if with := testing.AllocsPerRun(100, func() { tagged.Apply(req) }); with != without {
		t.Errorf("%v allocations, want %v", with, without)
	}
}
