package config

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, _, err := Parse("test.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheExampleLimitsTwoRoutesAndGivesNoWarning(t *testing.T) {
	data, err := os.ReadFile("../../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, warnings, err := Parse("config.example.yaml", data, nil)
	if err != nil || warnings != nil {
		t.Fatal(err, warnings)
	}
	var got []string
	for _, r := range c.Rules {
		got = append(got, fmt.Sprintln(r.Name, r.Match.Paths, r.Key, formatLimit(r.Limit), r.Limit.Algorithm))
	}
	want := []string{
		"trending [/api/videos/trending] [client_ip path] 100/1m sliding_counter\n",
		"search [/api/videos/search] [client_ip path] 20/1m sliding_log\n",
	}
	if c.Store.Redis != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatIsCommentedOutInTheExampleIsValidToo(t *testing.T) {
	data, err := os.ReadFile("../../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// A comment that begins as a key of the file does is one that can be taken in.
	known := map[string]bool{}
	for _, section := range sections {
		for _, key := range section.keys {
			known[key] = true
		}
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		text, isComment := strings.CutPrefix(line, "# ")
		key, _, _ := strings.Cut(strings.TrimLeft(text, " -"), ":")
		if !isComment || known[key] {
			lines = append(lines, text)
		}
	}
	c, _, err := Parse("uncommented", []byte(strings.Join(lines, "")), nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(lines, ""))
	}
	if len(c.Rules) != 6 || c.Store.Redis == nil || len(c.ClientIP.Trusted) != 1 {
		t.Errorf("the comments hold %d rules, %v, %v", len(c.Rules), c.Store, c.ClientIP)
	}
}

func TestAMinimalFileHasEveryDefault(t *testing.T) {
	got := parse(t, "rules: [{name: a, key: [], limit: 100/1m}, {name: b, key: [], limit: 10/1s, algorithm: token_bucket}]")
	want := &Config{
		Listen: []Listen{{Network: "tcp", Address: "127.0.0.1:9001"}},
		Admin:  "127.0.0.1:9002",
		Log:    Log{Level: "info", Format: "json"},
		Store:  Store{Memory: Memory{MaxKeys: 1_000_000}},
		ClientIP: rules.ClientIP{
			From: rules.FromPeer, Headers: []rules.AddressHeader{{Name: "x-forwarded-for"}}, IPv6Prefix: 64,
		},
		OnStoreError: rules.Admit,
		Replicas:     1,
		Response:     Response{XRateLimit: true, RateLimit: true, Body: "json", Status: 429},
		Rules: []rules.Rule{
			{Name: "a", Cost: 1, Limit: limiter.Limit{
				Algorithm: limiter.SlidingLog, Quota: 100, Window: time.Minute, Tick: time.Millisecond}},
			{Name: "b", Cost: 1, Limit: limiter.Limit{
				Algorithm: limiter.TokenBucket, Quota: 10, Window: time.Second, Burst: 10, Tick: time.Millisecond}},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestRedisHasDefaultsForAllButItsURL(t *testing.T) {
	got := parse(t, "store: {redis: {url: redis://cache}}").Store.Redis
	want := Redis{URL: "redis://cache", Mode: "single", Timeout: 20 * time.Millisecond, KeyPrefix: "rl"}
	if *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
}

func TestListenTakesOneAddressOrSeveral(t *testing.T) {
	tests := map[string][]Listen{
		":0":                          {{Network: "tcp", Address: ":0"}},
		"[127.0.0.1:0, 127.0.0.1:0]":  {{Network: "tcp", Address: "127.0.0.1:0"}, {Network: "tcp", Address: "127.0.0.1:0"}},
		"unix:///run/a.sock":          {{Network: "unix", Address: "/run/a.sock", Mode: 0o660}},
		`["unix:/b?mode=600"]`:        {{Network: "unix", Address: "/b", Mode: 0o600}},
		`"[::1]:9001"`:                {{Network: "tcp", Address: "[::1]:9001"}},
		"ratelimitd.example.com:9001": {{Network: "tcp", Address: "ratelimitd.example.com:9001"}},
	}
	for text, want := range tests {
		if got := parse(t, "listen: "+text).Listen; !reflect.DeepEqual(got, want) {
			t.Errorf("listen: %s is %v, want %v", text, got, want)
		}
	}
}

func TestARuleTakesTheStorePolicyOfTheTopUnlessItStatesItsOwn(t *testing.T) {
	c := parse(t, `
on_store_error: deny
rules:
- {name: a, key: [], limit: 1/1s}
- {name: b, key: [], limit: 1/1s, on_store_error: allow}`)
	if c.Rules[0].OnStoreError != rules.Refuse || c.Rules[1].OnStoreError != rules.Admit {
		t.Error(c.Rules[0].OnStoreError, c.Rules[1].OnStoreError)
	}
}

// D70: what is counted in Lua stays exact: long windows and large quotas get a coarser tick, not a rounded number.
func TestTheTickKeepsEveryProductExact(t *testing.T) {
	tests := map[string]time.Duration{
		"limit: 100/1m":   time.Millisecond,
		"limit: 100/366d": 100 * time.Millisecond,
		"limit: 4294967295/1d, algorithm: grouped_log":                  time.Second,
		"limit: 1/1d, algorithm: token_bucket":                          time.Millisecond,
		"limit: 1000000/1h, algorithm: token_bucket, burst: 4294967295": 10 * time.Millisecond,
	}
	for text, want := range tests {
		l := parse(t, "rules: [{name: a, key: [], "+text+"}]").Rules[0].Limit
		if l.Tick != want || l.WindowTicks()*uint64(l.Capacity()) >= 1<<51 {
			t.Errorf("%s has a tick of %v, want %v", text, l.Tick, want)
		}
	}
}

func TestARuleAndItsOverridesHaveTheTickOfTheLargest(t *testing.T) {
	tests := map[string]time.Duration{
		"limit: 100/1d, algorithm: grouped_log, overrides: [{match: {}, limit: 4294967295/1d}]":                           time.Second,
		"limit: 4294967295/1d, algorithm: grouped_log, overrides: [{match: {}, limit: 1/1d}]":                             time.Second,
		"limit: 1000000/1h, algorithm: token_bucket, overrides: [{match: {}, cost: 2}, {match: {}, burst: 4294967295}]":   10 * time.Millisecond,
		"limit: 0/366d, algorithm: fixed_window, overrides: [{match: {}, limit: 1/366d}, {match: {}, limit: 5000/8784h}]": 100 * time.Millisecond,
	}
	for text, want := range tests {
		r := parse(t, "rules: [{name: a, key: [], "+text+"}]").Rules[0]
		if r.Limit.Tick != want {
			t.Errorf("%s has a tick of %v, want %v", text, r.Limit.Tick, want)
		}
		for _, o := range r.Overrides {
			if l := o.Limit; l.Tick != want || l.Window != r.Limit.Window || l.Algorithm != r.Limit.Algorithm || l.WindowTicks()*uint64(l.Capacity()) >= 1<<51 {
				t.Errorf("%s has an override with %+v", text, l)
			}
		}
	}
}

func TestTheBurstOfAnOverrideIsItsOwnElseTheOneWrittenElseItsQuota(t *testing.T) {
	tests := map[string]uint32{
		"limit: 10/1s, overrides: [{match: {}, limit: 50/1s}]":                       50,
		"limit: 10/1s, overrides: [{match: {}, limit: 50/1s, burst: 7}]":             7,
		"limit: 10/1s, burst: 20, overrides: [{match: {}, limit: 50/1s}]":            20,
		"limit: 10/1s, burst: 20, overrides: [{match: {}, limit: 50/1s, burst: 60}]": 60,
		"limit: 10/1s, burst: 20, overrides: [{match: {}, cost: 2}]":                 20,
		"limit: 10/1s, overrides: [{match: {}, cost: 2}]":                            10,
		"limit: 0/1s, burst: 20, overrides: [{match: {}, limit: 50/1s}]":             20,
		"limit: 0/1s, overrides: [{match: {}, limit: 50/1s}]":                        50,
		"limit: 10/1s, burst: 20, overrides: [{match: {}, limit: 0/1s}]":             0,
	}
	for text, want := range tests {
		c := parse(t, "rules: [{name: a, key: [], algorithm: token_bucket, "+text+"}]")
		if got := c.Rules[0].Overrides[0].Limit.Burst; got != want {
			t.Errorf("%s has a burst of %d, want %d", text, got, want)
		}
		roundTrip(t, c)
	}
}

func TestACostHasTheBoundsOfItsAlgorithmUnlessItStatesItsOwn(t *testing.T) {
	attribute, err := rules.ParseAttribute("header.x-cost")
	if err != nil {
		t.Fatal(err)
	}
	from := func(least, most uint32) *rules.CostFrom {
		return &rules.CostFrom{Attribute: attribute, Min: least, Max: most}
	}
	tests := map[string]struct {
		cost uint32
		from *rules.CostFrom
	}{
		"cost: 3":                             {3, nil},
		"cost: {from: header.X-Cost}":         {1, from(1, 10_000)},
		"cost: {from: header.x-cost, min: 0}": {1, from(0, 10_000)},
		"cost: {from: header.x-cost, max: 7}": {1, from(1, 7)},
		"algorithm: grouped_log, cost: {from: header.x-cost, default: 9, min: 9}": {9, from(9, 4_294_967_295)},
		"cost: 3, overrides: [{match: {}, limit: 6/1m}]":                          {3, nil},
	}
	for text, want := range tests {
		r := parse(t, "rules: [{name: a, key: [], limit: 5/1m, "+text+"}]").Rules[0]
		if r.Cost != want.cost || !reflect.DeepEqual(r.CostFrom, want.from) {
			t.Errorf("%s costs %d %+v", text, r.Cost, r.CostFrom)
		}
	}
	r := parse(t, "rules: [{name: a, key: [], limit: 5/1m, cost: {from: header.x-cost}, overrides: [{match: {}, limit: 6/1m}, {match: {}, cost: 2}]}]").Rules[0]
	if kept, own := r.Overrides[0], r.Overrides[1]; !reflect.DeepEqual(kept.CostFrom, r.CostFrom) || own.CostFrom != nil || own.Cost != 2 {
		t.Errorf("the overrides cost %+v and %+v", kept, own)
	}
}

// D117: a limit of 0 refuses everything and is no fault; the burst of such a bucket has no meaning.
func TestALimitOfZeroIsValidForEveryAlgorithm(t *testing.T) {
	for _, algorithm := range limiter.Algorithms {
		l := parse(t, "rules: [{name: a, key: [], limit: 0/1m, algorithm: "+algorithm+"}]").Rules[0].Limit
		if !l.NeverPasses(1) || l.Lifetime() != 0 || l.Burst != 0 {
			t.Errorf("%s: %+v", algorithm, l)
		}
	}
}

func TestLengthsOfTimeMayHaveSeveralUnits(t *testing.T) {
	tests := map[string]time.Duration{
		"1ms": time.Millisecond, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "1w1d": 8 * day, "52w2d": 366 * day,
		"1m1m": 2 * time.Minute, "0h1s": time.Second,
	}
	for text, want := range tests {
		got, err := parseLength(text, limiter.MinWindow, limiter.MaxWindow)
		again, errAgain := parseLength(formatLength(got), limiter.MinWindow, limiter.MaxWindow)
		if err != nil || errAgain != nil || got != want || again != want {
			t.Errorf("%s is %v (%v) and %v (%v), want %v", text, got, err, again, errAgain, want)
		}
	}
}

func TestAHeaderOfOneAddressIsBelievedFromItsOwnRangesOnly(t *testing.T) {
	c := parse(t, "client_ip: {headers: [cf-connecting-ip, {name: X-Real-IP, from: [10.0.0.0/8, 192.0.2.1]}, x-forwarded-for]}")
	h := c.ClientIP.Headers
	if len(h) != 3 || !reflect.DeepEqual(h[0].From, BuiltinSets()["cloudflare"]) ||
		h[1].Name != "x-real-ip" || fmt.Sprint(h[1].From) != "[10.0.0.0/8 192.0.2.1/32]" || h[2].From != nil {
		t.Errorf("%v", h)
	}
}

func TestSuggestionsAreAtMostTwoLettersAway(t *testing.T) {
	words := []string{"limit", "listen", "log", "rules"}
	tests := map[string]string{
		"limmit": "limit", "limti": "limit", "LIMIT": "limit", "lim": "limit", "li": "", "listne": "listen", "rule": "rules",
		"lgo": "log", "xyz": "", "x": "", "": "", strings.Repeat("limit", 1000): "",
	}
	for word, want := range tests {
		if got := nearest(word, words); got != want {
			t.Errorf("%q suggests %q, want %q", word, got, want)
		}
	}
}

func TestEveryProblemIsOneLine(t *testing.T) {
	text := "rules: [{name: \"a\\nb\", key: [\"x\\ny\"], limit: \"1\\n/1m\", match: {paths: [\"~(\\n\", \"a\\n\"], hosts: [\"a\\n\"], " +
		"headers: {\"a\\nb\": c}, client_ips: [\"\\n\"]}, \"k\\n\": 1}]"
	_, _, err := Parse("a.yaml", []byte(text), nil)
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !strings.HasPrefix(line, "a.yaml:1:") {
			t.Errorf("%q", line)
		}
	}
}
