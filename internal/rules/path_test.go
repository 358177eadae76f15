package rules

import (
	"strings"
	"testing"
)

func TestEverySpellingOfAPathHasOneCanonicalForm(t *testing.T) { // D56, ENVOY.md §1.3
	for _, c := range []struct{ raw, want string }{
		{"/login", "/login"},
		{"//login", "/login"},
		{"/./login", "/login"},
		{"/x/../login", "/login"},
		{"/x/%2e%2E/login", "/login"},
		{"/%6Cogin", "/login"},
		{"/x/..;/login", "/login"},
		{"/login;v=1", "/login"},
		{"/login;v=%41/", "/login"},
		{"/;v=1/login", "/login"},
		{"/login/", "/login"},
		{"/login//", "/login"},
		{"/login/.", "/login"},
		{"/login/x/..", "/login"},
		{`\login`, "/login"},
		{`/x\..\login`, "/login"},
		{"/login?x=/../y", "/login"},
		{"/login#top", "/login"},
		{"/login?", "/login"},
		{"/login?%zz", "/login"},
		{"/../../login", "/login"},
		{"/%61dmin", "/admin"},
		{"/a+b", "/a+b"},
		{"/a=b,c:d@e!f$g&h'i(j)k*l~m", "/a=b,c:d@e!f$g&h'i(j)k*l~m"},
		{"/%2A", "/*"},
		{"/a..b/...", "/a..b/..."},
		{"/", "/"},
		{"//", "/"},
		{"/.", "/"},
		{"/..", "/"},
		{"/a/..", "/"},
		{"/;a", "/"},

		// These are other paths: decoding twice, or decoding a byte of structure, would change which.
		{"/LOGIN", "/LOGIN"},
		{"/%2flogin", "/%2Flogin"},
		{"/%256Cogin", "/%256Cogin"},
		{"/a%5cb", "/a%5Cb"},
		{"/a%3bv=1/b", "/a%3Bv=1/b"},
		{"/a%3fb%23c", "/a%3Fb%23c"},
		{"/a/..%2fb", "/a/..%2Fb"},
		{"/a%00b", "/a%00b"},
		{"/a%20b", "/a%20b"},
		{"/a b", "/a%20b"},
		{"/a\x7fb", "/a%7Fb"},
		{"/é", "/%C3%A9"},
		{"/%c3%a9", "/%C3%A9"},
		{"/%7e", "/~"},
		{"/%21", "/!"},
	} {
		if got, ok := CanonicalPath(c.raw); got != c.want || !ok {
			t.Errorf("CanonicalPath(%q) = %q, %v, want %q", c.raw, got, ok, c.want)
		}
	}
}

func TestAPathThatCannotBeParsedIsKeptRawWithoutItsQuery(t *testing.T) { // D56
	for raw, want := range map[string]string{
		"":               "",
		"*":              "*",
		"?x=1":           "",
		"login":          "login",
		"http://a/b?c":   "http://a/b",
		"/a%":            "/a%",
		"/a%2":           "/a%2",
		"/a%zz?x":        "/a%zz",
		"/a%2/b":         "/a%2/b",
		"//a/../%g0":     "//a/../%g0",
		"/login;v=%zz":   "/login;v=%zz",
		"/login/%c3%a#x": "/login/%c3%a",
	} {
		if got, ok := CanonicalPath(raw); got != want || ok {
			t.Errorf("CanonicalPath(%q) = %q, %v, want %q, false", raw, got, ok, want)
		}
	}
}

func TestACanonicalPathIsNotCopied(t *testing.T) {
	for _, raw := range []string{"/", "/api/videos/trending", "/a%2Fb?x=1"} {
		if n := testing.AllocsPerRun(100, func() { CanonicalPath(raw) }); n != 0 {
			t.Errorf("CanonicalPath(%q) allocates %v times", raw, n)
		}
	}
}

func FuzzCanonicalPath(f *testing.F) {
	f.Add(`/x/..;/%6Cogin\?x`)
	f.Fuzz(func(t *testing.T, raw string) {
		path, ok := CanonicalPath(raw)
		if !ok {
			if !strings.HasPrefix(raw, path) || strings.ContainsAny(path, "?#") {
				t.Errorf("unparsable %q became %q", raw, path)
			}
			return
		}
		if again, ok := CanonicalPath(path); again != path || !ok {
			t.Errorf("%q became %q, and that %q, %v", raw, path, again, ok)
		}
		if strings.ContainsAny(path, "\\?#;") || strings.Contains(path+"/", "/../") || path[0] != '/' {
			t.Errorf("%q became %q", raw, path)
		}
	})
}

func BenchmarkCanonicalPath(b *testing.B) {
	for name, raw := range map[string]string{"canonical": "/api/videos/trending?page=2", "rewritten": "/api//videos/%74rending/"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				CanonicalPath(raw)
			}
		})
	}
}
