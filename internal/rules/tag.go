package rules

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// A bucket's tag is the first 4 bytes of the SHA-256 of one part of its key, as the key has it: the first part of the first
// of tagKinds that is there, so that most buckets of one client have one tag. The client's address in place of a missing value
// gives the tag that a client_ip part gives. Without such a part the tag is the first 4 bytes of the key; of a rule with one
// bucket for all, those of the SHA-256 of its name, sized. The tag is a part of a bucket's name in a cluster: a change to it
// starts every bucket there afresh.
var tagKinds = []attributeKind{
	clientAttribute, principalAttribute, headerAttribute, cookieAttribute, metadataAttribute, extensionAttribute, queryAttribute,
}

// tagPart is the place of the key part that the tag is made of; -1 when there is none.
func tagPart(key []Attribute) int {
	for _, kind := range tagKinds {
		if i := slices.IndexFunc(key, func(a Attribute) bool { return a.kind == kind }); i >= 0 {
			return i
		}
	}
	return -1
}

// TagAttribute is the attribute of a limit rule's key by which its buckets are laid into slots of a Redis Cluster: buckets of
// rules that have the same one share the slot for the same value. ok is false if each bucket, or the one that the rule has,
// lies where its own name leads.
func (r *Rule) TagAttribute() (a Attribute, ok bool) {
	i := tagPart(r.Key)
	if i < 0 {
		return Attribute{}, false
	}
	return r.Key[i], true
}

// tag makes the tag of a bucket of the rule, of which part is the part that it is made of, if there is one.
func (r *compiledRule) tag(key limiter.Key, part []byte) uint32 {
	switch {
	case len(r.Key) == 0:
		part = r.keyHead[:4+len(r.Name)]
	case r.tagPart < 0:
		return binary.BigEndian.Uint32(key[:])
	default:
		mark := 4 + len(r.Key[r.tagPart].text)
		if part[mark] == clientValue {
			var space [64]byte
			text := append(appendSized(space[:0], "client_ip"), ownValue)
			part = append(text, part[mark+1:]...)
		}
	}
	sum := sha256.Sum256(part)
	return binary.BigEndian.Uint32(sum[:])
}
