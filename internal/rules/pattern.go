package rules

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// PathPattern says which paths a rule is for. ParsePath makes one; the zero value matches no path.
type PathPattern struct {
	text   string
	path   string // canonical, without a last `/**`
	below  bool   // ended in `/**`: the path and all below it
	wild   bool   // path has a `*` segment
	regexp *regexp.Regexp
}

// ParsePath reads a path pattern. `*` stands for one whole segment, `**` as the last segment for any number of them, none
// included; all else is made canonical as a request's path is. What follows a `~` is an RE2 expression that is searched
// for in the canonical path, not anchored.
func ParsePath(text string) (PathPattern, error) {
	if expression, ok := strings.CutPrefix(text, "~"); ok {
		re, err := regexp.Compile(expression)
		if err != nil {
			return PathPattern{}, fmt.Errorf("%w, wanted an RE2 expression after `~`", err)
		}
		return PathPattern{text: text, regexp: re}, nil
	}
	switch {
	case !strings.HasPrefix(text, "/"):
		return PathPattern{}, fmt.Errorf("%q, wanted a path that begins with `/`, or `~` and a regular expression", text)
	case strings.ContainsAny(text, "?#"):
		return PathPattern{}, errors.New("`?` or `#` in a path, wanted a path without query and fragment: they are not matched")
	case strings.Contains(strings.ToUpper(text), "%2A"):
		return PathPattern{}, errors.New("`%2A` in a path, wanted a regular expression (`~`) for a literal asterisk")
	}
	path, ok := CanonicalPath(text)
	if !ok {
		return PathPattern{}, errors.New("`%` without two hex digits, wanted `%25` for the sign itself")
	}
	p := PathPattern{text: text}
	p.path, p.below = strings.CutSuffix(path, "/**")
	for segment := range strings.SplitSeq(p.path, "/") {
		switch {
		case segment == "**":
			return PathPattern{}, errors.New("`**` inside a path, wanted it as the last segment only")
		case segment != "*" && strings.Contains(segment, "*"):
			return PathPattern{}, fmt.Errorf("`*` as part of the segment %q, wanted `*` as a whole segment or a regular expression (`~`)", segment)
		}
		p.wild = p.wild || segment == "*"
	}
	return p, nil
}

// String returns the pattern as it was written.
func (p PathPattern) String() string { return p.text }

// matches takes what CanonicalPath returned. Of a path that is not ok nothing can be said, so only `/**` matches it.
func (p PathPattern) matches(path string, ok bool) bool {
	switch {
	case !ok:
		return p.below && p.path == ""
	case p.regexp != nil:
		return p.regexp.MatchString(path)
	case p.wild:
		return p.matchesSegments(path)
	}
	rest, ok := strings.CutPrefix(path, p.path)
	return ok && (rest == "" || p.below && rest[0] == '/')
}

func (p PathPattern) matchesSegments(path string) bool {
	for pattern := p.path; pattern != ""; {
		var want, have string
		want, pattern = cutSegment(pattern)
		have, path = cutSegment(path)
		if have == "" || want != "*" && want != have {
			return false
		}
	}
	return path == "" || p.below
}

// cutSegment splits the first segment from a canonical path; it is empty for the root and for what is left after the
// last segment.
func cutSegment(path string) (segment, rest string) {
	if path == "" {
		return "", ""
	}
	if i := strings.IndexByte(path[1:], '/'); i >= 0 {
		return path[1 : 1+i], path[1+i:]
	}
	return path[1:], ""
}

// beginning returns the segments with which every path that the pattern matches begins, `*` standing for any, and whether
// more may follow them.
func (p PathPattern) beginning() (path string, below bool) {
	if p.regexp == nil {
		return p.path, p.below
	}
	return literalBeginning(p.regexp.String()), true
}

// literalBeginning returns the whole segments with which every text that an RE2 expression matches begins; "" when it is not
// anchored at the beginning of the text, and when it is none.
func literalBeginning(expression string) string {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil || re.Op != syntax.OpConcat || re.Sub[0].Op != syntax.OpBeginText {
		return ""
	}
	var literal []rune
	for _, sub := range re.Sub[1:] {
		if sub.Op != syntax.OpLiteral || sub.Flags&syntax.FoldCase != 0 {
			break
		}
		literal = append(literal, sub.Rune...)
	}
	text, _, _ := strings.Cut(string(literal), "/*") // which is no wildcard here
	return text[:max(0, strings.LastIndexByte(text, '/'))]
}
