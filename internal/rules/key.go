package rules

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// A bucket's key is the first 16 bytes of the SHA-256 of
//
//	rule name                 sized
//	algorithm                 1 byte
//	tick in milliseconds      8 bytes
//	then for each key part
//	  attribute text          sized
//	  what the value is       1 byte
//	  value                   sized
//
// where the attribute's text is what the configuration says, the name of a header in lower case, and sized is a length of
// 4 bytes and the bytes themselves; numbers are big-endian. An address is its 4 or 16 bytes. Nothing a client sends can
// shift a border or pass for a value of another kind, and the hash hides the values from who reads the store. The numbers of
// limit, cost and overrides are not in it. The layout is what buckets are found by: a change to it starts every bucket
// afresh.
const (
	ownValue    byte = 1 // the attribute's value
	clientValue byte = 2 // the client's address in place of a missing value
	sharedValue byte = 3 // empty: the value is missing, and all who lack it share a bucket
)

// keyHead is the part of the hashed text that is the same for all buckets of a rule.
func keyHead(r *Rule) []byte {
	head := appendSized(nil, r.Name)
	head = append(head, byte(r.Limit.Algorithm))
	return binary.BigEndian.AppendUint64(head, uint64(max(r.Limit.Tick, time.Millisecond)/time.Millisecond))
}

func appendSized(b []byte, value string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(value))), value...)
}

func appendAddress(b []byte, addr netip.Addr) []byte {
	if addr.Is4() {
		bytes := addr.As4()
		return append(binary.BigEndian.AppendUint32(b, 4), bytes[:]...)
	}
	bytes := addr.As16()
	return append(binary.BigEndian.AppendUint32(b, 16), bytes[:]...)
}

// bucket is where a limit rule that matched spends, if it does.
type bucket struct {
	key     limiter.Key
	tag     uint32
	missing bool // a part of the key is
	skipped bool // for that the rule does not apply
	refused bool // for that the request is refused
}

// findBucket makes the rule's key from the request. A missing part does what the rule says; but when the client's address
// is unknown, a part that needs it skips the rule, whatever the rule says: else the whole site would share one bucket.
// A part that refuses goes before one that skips.
func (f *facts) findBucket(r *compiledRule, route string) bucket {
	var found bucket
	var space [256]byte
	var tagged []byte
	text := append(space[:0], r.keyHead...)
	for i, attribute := range r.Key {
		begin := len(text)
		text = f.appendPart(text, r, attribute, route, &found)
		if i == r.tagPart {
			tagged = text[begin:]
		}
	}
	if found.skipped || found.refused {
		return found
	}
	sum := sha256.Sum256(text)
	found.key = limiter.Key(sum[:len(found.key)])
	if r.tagged {
		found.tag = r.tag(found.key, tagged)
	}
	return found
}

// appendPart appends one part of the key, as far as the request has it.
func (f *facts) appendPart(text []byte, r *compiledRule, attribute Attribute, route string, found *bucket) []byte {
	text = appendSized(text, attribute.text)
	if attribute.kind == clientAttribute {
		return f.appendClient(append(text, ownValue), found)
	}
	if value, count := f.value(attribute, route); count == 1 && value != "" {
		return appendSized(append(text, ownValue), value)
	}
	found.missing = true
	switch r.OnMissingKey {
	case UseClientIP:
		return f.appendClient(append(text, clientValue), found)
	case ShareBucket:
		return appendSized(append(text, sharedValue), "")
	case SkipRule:
		found.skipped = true
	case RefuseMissing:
		found.refused = true
	}
	return text
}

func (f *facts) appendClient(text []byte, found *bucket) []byte {
	client, known := f.clientAddress()
	if !known {
		found.missing, found.skipped = true, true
		return text
	}
	return appendAddress(text, f.source.group(client))
}
