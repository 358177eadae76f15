package config

import (
	"fmt"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"
)

// decoder walks one file and collects every problem that it meets.
type decoder struct {
	file     string
	sets     AddressSets
	problems []Problem
	warnings []Problem // what is valid and probably not what was meant
	// timeZones are those that the file has named so far: each is read but once.
	timeZones map[string]*time.Location
}

// value is one node of the file together with the way to it.
type value struct {
	d    *decoder
	node *yaml.Node // never an alias
	// rule and field are what a Problem says of the place.
	rule, field string
}

// entry is the value of a node that lies under v; name is what v calls it.
func (v value) entry(name string, node *yaml.Node) value {
	v.node = follow(node)
	switch {
	case v.field == "":
		v.field = name
	case name != "":
		v.field += "." + name
	}
	return v
}

// follow returns the node that an alias stands for.
func follow(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

// fail notes a problem with the value.
func (v value) fail(format string, args ...any) {
	v.d.problems = append(v.d.problems, v.problem(format, args...))
}

// warn notes that the value is probably not what was meant.
func (v value) warn(format string, args ...any) {
	v.d.warnings = append(v.d.warnings, v.problem(format, args...))
}

// problem makes a problem with the value, without noting it.
func (v value) problem(format string, args ...any) Problem {
	return Problem{
		File: v.d.file, Line: max(v.node.Line, 1), Column: max(v.node.Column, 1),
		Rule: v.rule, Field: v.field, Message: fmt.Sprintf(format, args...),
	}
}

// unlike notes that the value is of another kind than wanted.
func (v value) unlike(want string) {
	v.fail("%s, wanted %s", v.kind(), want)
}

// kind says in words what the file has here.
func (v value) kind() string {
	switch n := v.node; {
	case n.Kind == yaml.MappingNode:
		return "has keys of its own"
	case n.Kind == yaml.SequenceNode:
		return "is a list"
	case n.Style&yaml.TaggedStyle != 0:
		return "has the YAML tag " + quote(n.Tag)
	case n.Tag == "!!null":
		return "is empty"
	case n.Tag == "!!str":
		return "is the text " + quote(n.Value)
	}
	return "is " + quote(v.node.Value)
}

// text returns a scalar as it is written, whatever YAML would make of it: 1.0 and yes are texts too.
func (v value) text(want string) (string, bool) {
	if v.node.Kind != yaml.ScalarNode || v.node.Style&yaml.TaggedStyle != 0 || v.node.Tag == "!!null" {
		v.unlike(want)
		return "", false
	}
	return v.node.Value, true
}

// number returns a whole number from least to most, which must be written with digits alone and without quotes.
func (v value) number(least, most uint64) (uint64, bool) {
	text := v.node.Value
	n, err := strconv.ParseUint(text, 10, 64)
	plain := v.node.Kind == yaml.ScalarNode && v.node.Style == 0 && !hasLeadingZero(text)
	if err != nil || !plain || n < least || n > most {
		v.unlike(fmt.Sprintf("a whole number from %d to %d", least, most))
		return 0, false
	}
	return n, true
}

// choice returns which of the words the value is.
func (v value) choice(words []string) (int, bool) {
	text, ok := v.text(oneOf(words))
	if !ok {
		return 0, false
	}
	for i, word := range words {
		if word == text {
			return i, true
		}
	}
	v.fail("%s is not known, wanted %s%s", quote(text), oneOf(words), didYouMean(nearest(text, words)))
	return 0, false
}

// list returns the entries of a list that has at least that many.
func (v value) list(least int, want string) ([]value, bool) {
	if v.node.Kind != yaml.SequenceNode || v.node.Style&yaml.TaggedStyle != 0 {
		v.unlike(want)
		return nil, false
	}
	if len(v.node.Content) < least {
		v.fail("is an empty list, wanted %s", want)
		return nil, false
	}
	entries := make([]value, len(v.node.Content))
	for i, node := range v.node.Content {
		entries[i] = v.entry("", node)
	}
	return entries, true
}

func (v value) isList() bool    { return v.node.Kind == yaml.SequenceNode }
func (v value) isMapping() bool { return v.node.Kind == yaml.MappingNode }
