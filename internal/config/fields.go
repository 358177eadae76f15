package config

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// The mappings of the file by the words that messages use for them, each with its keys in the order of the
// documentation.
const (
	fileSection     = "the top of the file"
	logSection      = "log"
	storeSection    = "store"
	redisSection    = "store.redis"
	memorySection   = "store.memory"
	clientSection   = "client_ip"
	addressSection  = "client_ip.headers"
	responseSection = "response"
	ruleSection     = "a rule"
	matchSection    = "match"
	costSection     = "cost"
	overrideSection = "an override"
	namesSection    = "a condition on values" // its keys are whatever is to have a value
)

var sections = []struct {
	name string
	keys []string
}{
	{fileSection, []string{"listen", "admin", "log", "store", "on_store_error", "replicas", "client_ip", "response", "rules"}},
	{logSection, []string{"level", "format"}},
	{storeSection, []string{"redis", "memory"}},
	{redisSection, []string{"url", "mode", "timeout", "key_prefix"}},
	{memorySection, []string{"max_keys"}},
	{clientSection, []string{"from", "trusted_proxies", "headers", "ipv6_prefix"}},
	{addressSection, []string{"name", "from"}},
	{responseSection, []string{"headers", "body", "status"}},
	{ruleSection, []string{"name", "match", "key", "limit", "algorithm", "timezone", "burst", "cost", "mode",
		"on_missing_key", "on_store_error", "count_denied", "ban", "overrides", "action"}},
	{matchSection, []string{"hosts", "methods", "paths", "headers", "query", "client_ips", "extensions", "metadata"}},
	{costSection, []string{"from", "default", "min", "max"}},
	{overrideSection, []string{"match", "limit", "burst", "cost"}},
}

// fields are the keys of one mapping and their values.
type fields struct {
	value
	entries map[string]value
	// keys are the places of the keys, and the order in which they are written.
	keys  map[string]value
	order []string
	// meant holds the keys that a misspelt key or a merge seems to mean: they are not reported as missing too.
	meant map[string]bool
}

// fields reads the value as the mapping of that name. Keys that do not belong there, or come twice, are noted and left
// out.
func (v value) fields(section string) (fields, bool) {
	if v.node.Kind != yaml.MappingNode || v.node.Style&yaml.TaggedStyle != 0 {
		want := "keys with values, as in name: value"
		if known := keysOf(section); known != nil {
			want = "the keys " + strings.Join(known, ", ")
		}
		v.unlike(want)
		return fields{}, false
	}
	f := fields{value: v, entries: map[string]value{}, keys: map[string]value{}, meant: map[string]bool{}}
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		f.add(section, follow(v.node.Content[i]), v.node.Content[i+1])
	}
	return f, true
}

// add takes one key into the fields, if it may stand there.
func (f *fields) add(section string, key, node *yaml.Node) {
	switch {
	case key.Kind != yaml.ScalarNode || key.Style&yaml.TaggedStyle != 0:
		f.entry("", key).fail("this key is not a word, wanted a plain name before the colon")
		return
	case key.Tag == "!!merge":
		f.entry("", key).fail("merge keys (<<) are not supported, wanted the keys themselves or an alias for a whole value")
		for _, merged := range keysOf(section) {
			f.meant[merged] = true
		}
		return
	}
	at := f.entry(printable(key.Value), key)
	if known := keysOf(section); known != nil && !slices.Contains(known, key.Value) {
		at.fail("%s", f.stray(key.Value, known))
		return
	}
	if first, twice := f.keys[key.Value]; twice {
		at.fail("the key is here twice, first on line %d, wanted it once", first.node.Line)
		return
	}
	f.keys[key.Value], f.order = at, append(f.order, key.Value)
	f.entries[key.Value] = f.entry(printable(key.Value), node)
}

// stray says of an unknown key what was wanted in its place.
func (f *fields) stray(key string, known []string) string {
	var homes []string
	for _, s := range sections {
		if slices.Contains(s.keys, key) {
			homes = append(homes, s.name)
		}
	}
	if homes != nil {
		return "does not belong here, wanted it in " + oneOf(homes)
	}
	if better := nearest(key, known); better != "" {
		f.meant[better] = true
		return "unknown key" + didYouMean(better)
	}
	return "unknown key, wanted " + oneOf(known)
}

// get returns the value of a key; ok is false when the key is not written.
func (f fields) get(key string) (v value, ok bool) {
	v, ok = f.entries[key]
	return v, ok
}

// require is get for a key that must be written; if it is not, that is noted with what was wanted.
func (f fields) require(key, want string) (value, bool) {
	v, ok := f.entries[key]
	if !ok && !f.meant[key] {
		f.entry(key, f.node).fail("is missing, wanted %s", want)
	}
	return v, ok
}

// keysOf returns the keys of a section; nil for one in which any key may stand.
func keysOf(section string) []string {
	for _, s := range sections {
		if s.name == section {
			return s.keys
		}
	}
	return nil
}

// printable returns a key as a message shows it: as it is, or quoted when it is no plain word.
func printable(key string) string {
	for _, r := range key {
		if r <= ' ' || r > '~' {
			return quote(key)
		}
	}
	if key == "" || len(key) > 80 {
		return quote(key)
	}
	return key
}

// section returns the fields of a mapping that may be left out.
func (f fields) section(key, section string) (fields, bool) {
	v, ok := f.get(key)
	if !ok {
		return fields{}, false
	}
	return v.fields(section)
}

// choose sets the word to the value of a key, if it is written.
func (f fields) choose(key string, words []string, word *string) {
	if v, ok := f.get(key); ok {
		if i, ok := v.choice(words); ok {
			*word = words[i]
		}
	}
}

// length sets the length of time to the value of a key, if it is written.
func (f fields) length(key, want string, least, most time.Duration, length *time.Duration) {
	v, ok := f.get(key)
	if !ok {
		return
	}
	if text, ok := v.text(want); ok {
		var err error
		if *length, err = parseLength(text, least, most); err != nil {
			v.fail("%v", err)
		}
	}
}
