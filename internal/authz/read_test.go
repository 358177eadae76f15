package authz

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// sameRequest compares what was read from the bytes with what protobuf decodes, of which the headers that nobody reads are left
// out.
func sameRequest(t *testing.T, reads *rules.Reads, data []byte) {
	t.Helper()
	check := &authv3.CheckRequest{}
	c := &call{data: data}
	if proto.Unmarshal(data, check) != nil || !c.readUsual(reads) {
		return // what protobuf does not take is repaired first, and what is unusual is left to it
	}
	got, want := c.request, requestOf(check)
	want.Headers = slices.DeleteFunc(want.Headers, func(h rules.Header) bool { return !reads.Header(h.Name) })
	if check.GetAttributes().GetRequest().GetHttp().GetHeaderMap() == nil { // from a map, in no order
		byName := func(a, b rules.Header) int { return cmp.Compare(a.Name, b.Name) }
		slices.SortFunc(got.Headers, byName)
		slices.SortFunc(want.Headers, byName)
	}
	if c.empty != (check.GetAttributes() == nil) || got.HTTP != want.HTTP || got.Method != want.Method || got.Host != want.Host ||
		got.Path != want.Path || got.Peer != want.Peer || got.Principal != want.Principal ||
		!slices.Equal(got.Headers, want.Headers) || reads.Extensions && !maps.Equal(got.Extensions, want.Extensions) {
		t.Errorf("read   %+v\ndecoded %+v", got, want)
	}
	metadata, _ := got.Metadata.(filterMetadata)
	if reads.Metadata && len(check.GetAttributes().GetMetadataContext().GetFilterMetadata()) > 0 &&
		!proto.Equal(metadata.Metadata, check.GetAttributes().GetMetadataContext()) {
		t.Errorf("metadata %v", metadata.Metadata)
	}
}

// usualChecks are read without protobuf, in both forms of the headers.
func usualChecks(t testing.TB) (all [][]byte) {
	many := get("/a/long/path?"+string(make([]byte, 300)), "x-api-key", "k", "x-other", "o", "x-text", string(slices.Repeat([]byte("t"), 200)))
	many.Attributes.Source.Principal = "spiffe://x"
	many.Attributes.ContextExtensions = map[string]string{"tier": "gold", "": ""}
	many.Attributes.MetadataContext = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"n": {Fields: map[string]*structpb.Value{"text": structpb.NewStringValue("v")}}}}
	many.Attributes.TlsSession = &authv3.AttributeContext_TLSSession{Sni: "example.org"}
	for _, check := range []*authv3.CheckRequest{get("/"), benchRequest(), many} {
		all = append(all, encode(t, check), encode(t, raw(check)))
	}
	return append(all, nil, encode(t, &authv3.CheckRequest{Attributes: &authv3.AttributeContext{}}))
}

func TestWhatEnvoySendsIsReadWithoutProtobuf(t *testing.T) {
	reads := allReads(t)
	for i, data := range usualChecks(t) {
		if !(&call{data: data}).readUsual(&reads) {
			t.Errorf("check %d counts as unusual", i)
		}
		sameRequest(t, &reads, data)
	}
}

func TestAHeaderOfAnyLengthIsReadAndOneThatIsCutOffIsNot(t *testing.T) {
	const key = "x-text"
	for _, length := range []int{0, 1, 127, 128, 300, 1<<14 - 1, 1 << 14, 1 << 15} {
		value := slices.Repeat([]byte("v"), length)
		whole := appendText(appendText(nil, entryKey, key), entryValue, value)
		var e entry
		if !e.read(whole) || string(e.key) != key || !slices.Equal(e.value, value) {
			t.Errorf("value of %d bytes: %q is %d bytes", length, e.key, len(e.value))
		}
		for n := len(key) + 3; n < len(whole); n++ {
			if new(entry).read(slices.Clip(whole[:n])) {
				t.Errorf("value of %d bytes: read from %d of %d bytes", length, n, len(whole))
				break
			}
		}
	}
}

// FuzzRead holds what is read from arbitrary bytes equal to what protobuf decodes, if it does.
func FuzzRead(f *testing.F) {
	for _, data := range usualChecks(f) {
		f.Add(data)
		f.Add(append(slices.Clone(data), data...)) // merged
	}
	twice := get("/", "x-api-key", "a")
	f.Add(append(encode(f, twice), encode(f, get("/b", "X-API-Key", "b"))...))
	all, none := allReads(f), rules.NewSet(nil, rules.ClientIP{}).Reads()
	f.Fuzz(func(t *testing.T, data []byte) {
		sameRequest(t, &all, data)
		sameRequest(t, &none, data)
	})
}
