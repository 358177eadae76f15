package config

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// surveyed decodes rules without looking for warnings yet: s.warn notes them in the decoder.
func surveyed(t testing.TB, text string) (s survey, d *decoder) {
	t.Helper()
	d = &decoder{file: "test.yaml", sets: BuiltinSets()}
	root, ok := d.document([]byte(text))
	if !ok {
		t.Fatal(d.problems)
	}
	decoded := root.config(defaults())
	if d.problems != nil {
		t.Fatal(Problems(d.problems))
	}
	return newSurvey(decoded), d
}

// randomRule makes a rule of few different words, so that many cover each other.
func randomRule(random *rand.Rand, i int) string {
	pick := func(key string, words ...string) string {
		random.Shuffle(len(words), func(a, b int) { words[a], words[b] = words[b], words[a] })
		n := random.IntN(4)
		if n == 0 || random.IntN(2) == 0 {
			return ""
		}
		return fmt.Sprintf("%s: [%s], ", key, strings.Join(words[:min(n, len(words))], ", "))
	}
	value := func(name string) string {
		words := []string{"present", "absent", "[a]", "[b]", "[a, b]", "[c, a]"}
		if random.IntN(3) > 0 {
			return ""
		}
		return name + ": " + words[random.IntN(len(words))] + ", "
	}
	match := pick("hosts", "a.b.c", `"*.b.c"`, `"*.c"`, `"*"`, "b.c", `"*.a.b.c"`) + pick("methods", "GET", "PUT") +
		pick("paths", "/", "/a", "/a/b", "/a/*", "/a/**", "/*/b", "/*", "/**", "/*/**", `"~^/a"`, `"~b$"`, "/a/*/c") +
		pick("client_ips", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", `"::/0"`, "0.0.0.0/0", `"2001:db8::/32"`)
	if headers := value("x-a") + value("x-b"); headers != "" {
		match += "headers: {" + headers + "}, "
	}
	if query := value("x-a"); query != "" {
		match += "query: {" + query + "}, "
	}
	for _, kind := range []string{"extensions: {x-a: [%s]}, ", `metadata: {"n:x-a": [%s]}, `} {
		if random.IntN(6) == 0 {
			match += fmt.Sprintf(kind, []string{"a", "b", "a, b"}[random.IntN(3)])
		}
	}
	actions := []string{"action: allow", "action: deny", "action: deny, mode: shadow", "key: [], limit: 5/1m", "key: [], limit: 6/1m"}
	text := fmt.Sprintf("- {name: r%d, %s", i, actions[random.IntN(len(actions))])
	if match != "" {
		text += ", match: {" + match + "}"
	}
	return text + "}\n"
}

// metadata holds values by their place as it is written.
type metadata map[string]string

func (m metadata) Value(at rules.MetadataPath) (string, bool) {
	text, ok := m[at.String()]
	return text, ok
}

func randomRequest(random *rand.Rand) *rules.Request {
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	req := &rules.Request{Peer: netip.MustParseAddr(pick("10.1.2.3", "10.1.0.1", "10.9.9.9", "192.0.2.1", "2001:db8::1", "::1"))}
	if random.IntN(20) == 0 {
		req.Peer = netip.Addr{}
	}
	if random.IntN(2) == 0 {
		req.Extensions = map[string]string{"x-a": pick("a", "b", "c")}
	}
	if random.IntN(2) == 0 {
		req.Metadata = metadata{"n:x-a": pick("a", "b", "c")}
	}
	if random.IntN(8) == 0 {
		return req
	}
	req.HTTP = true
	req.Method = pick("GET", "PUT", "POST")
	req.Host = pick("a.b.c", "x.a.b.c", "b.c", "c", "other", "a,b", "")
	req.Path = pick("/", "/a", "/a/b", "/a/b/c", "/a/x", "/x/b", "/x", "/x/y/z", "*", "/%zz", "") + pick("", "?x-a=a", "?x-a=b&x-a=z", "?x-a", "?x-b=a&x-a=a&x-a=b")
	for _, name := range []string{"x-a", "x-b"} {
		for random.IntN(2) == 0 {
			req.Headers = append(req.Headers, rules.Header{Name: name, Value: pick("a", "b", "c", "a,b", "b, z", "")})
		}
	}
	return req
}

// The warning is never wrong, and the index behind it misses nothing that comparing all rules with all would find.
func TestARuleIsSaidToBeUnreachedIfAnotherCoversItAndThenNoRequestReachesIt(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	unreached := 0
	for range 60 {
		var text strings.Builder
		text.WriteString("rules:\n")
		for i := range 60 {
			text.WriteString(randomRule(random, i))
		}
		s, d := surveyed(t, text.String())
		s.hidden()
		var got, want []string
		for _, p := range d.warnings {
			got = append(got, p.Rule)
		}
		list := make([]rules.Rule, len(s.subjects))
		for i := range s.subjects {
			list[i] = s.subjects[i].rule
			if coveredByAny(&s, &s.subjects[i]) {
				want = append(want, list[i].Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("said to be unreached are %v, want %v:\n%s", got, want, text.String())
		}
		unreached += len(got)
		set := rules.NewSet(list, rules.ClientIP{})
		for range 200 {
			req := randomRequest(random)
			a := set.Apply(req)
			reached := slices.Concat(a.ShadowDecided, a.Rules)
			if a.Decided != nil {
				reached = append(reached, a.Decided)
			}
			for _, r := range reached {
				if slices.Contains(got, r.Name) {
					t.Fatalf("%s is reached by %+v:\n%s", r.Name, req, text.String())
				}
			}
		}
	}
	if unreached < 100 {
		t.Errorf("only %d rules were unreached, too few to tell anything", unreached)
	}
}

// coveredByAny compares a rule with all that are enforced and go before it.
func coveredByAny(s *survey, r *subject) bool {
	return slices.ContainsFunc(s.subjects, func(by subject) bool {
		return by.rule.Action != rules.Limit && !by.rule.Shadow && (r.rule.Action == rules.Limit || by.place < r.place) &&
			by.scope.covers(&r.scope)
	})
}

const (
	bounds  = "key: [client_ip], limit: 10/1m"
	invents = "key: [header.x-key], limit: 20/1m"
)

// shapes are what files of very many rules look like, three rules at a time, and how many of the three deserve a warning.
var shapes = map[string]struct {
	rules    func(i int) [3]string
	warnings int
}{
	"matched by header":       {denied("headers: {x-tenant: t%d, x-a: present}"), 2},
	"matched by path":         {denied("paths: [/health, /api/%d/**], methods: [GET]"), 2},
	"matched by late segment": {denied("paths: [/api/*/%d]"), 2},
	"matched by host":         {denied("hosts: [\"*.t%d.example\"]"), 2},
	"matched by client":       {denied("client_ips: [\"2001:db8:%x::/48\"]"), 2},
	"matched alike":           {denied("headers: {x-a: present}, client_ips: [\"::%[1]d\", 10.0.0.0/8]"), 2},
	"keyed by header": {func(i int) [3]string {
		return [3]string{
			fmt.Sprintf("match: {headers: {x-tenant: t%d}}, %s", i, bounds),
			fmt.Sprintf("match: {paths: [/api/%d]}, %s", i, bounds),
			fmt.Sprintf("match: {methods: [GET], paths: [/other/%d]}, %s", i, invents),
		}
	}, 1},
}

// denied returns three rules with the same match: two limits, and a denial that hides both.
func denied(match string) func(i int) [3]string {
	return func(i int) [3]string {
		m := "match: {" + fmt.Sprintf(match, i) + "}, "
		return [3]string{m + bounds, m + invents, m + "action: deny"}
	}
}

// file writes three times n rules of a shape.
func file(n int, rules func(i int) [3]string) string {
	var text strings.Builder
	text.WriteString("rules:\n")
	for i := range n {
		for k, rule := range rules(i) {
			fmt.Fprintf(&text, "- {name: r%d-%d, %s}\n", i, k, rule)
		}
	}
	return text.String()
}

func TestVeryManyRulesGetEachWarningForLittleComparing(t *testing.T) {
	const n = 1_000
	for name, shape := range shapes {
		s, d := surveyed(t, file(n, shape.rules))
		s.effort = 50 * len(s.subjects) // not their square
		s.warn()
		if want := n * shape.warnings; len(d.warnings) != want {
			t.Errorf("%s: %d warnings, want %d", name, len(d.warnings), want)
		}
	}
}

func TestASurveyThatGivesUpHoldsNothingAgainstTheRules(t *testing.T) {
	const text = `
rules:
- {name: bounding, match: {headers: {x-a: present}}, key: [client_ip], limit: 10/1m}
- {name: inventable, match: {headers: {x-a: [b]}}, key: [header.x-c], limit: 10/1m}
- {name: all, action: deny, match: {headers: {x-a: present}}}
- {name: coarse, key: [], limit: 1/1m, algorithm: sliding_counter}`
	s, d := surveyed(t, text)
	s.effort = 0
	s.warn()
	if len(d.warnings) != 1 || d.warnings[0].Rule != "coarse" {
		t.Errorf("%v", Problems(d.warnings))
	}
}

func BenchmarkParseFifteenThousandRules(b *testing.B) {
	for name, shape := range shapes {
		data := []byte(file(5_000, shape.rules))
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := Parse("many.yaml", data, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
