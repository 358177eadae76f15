package authz

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// walk goes through the fields of one encoded message.
type walk struct {
	rest   []byte
	number protowire.Number
	value  []byte // of a text, bytes or message; nil for a field of another kind
	broken bool   // the bytes are no message
}

// next goes to the next field. It is false at the end, and where the bytes make no sense.
func (w *walk) next() bool {
	b := w.rest
	if len(b) >= 2 && b[0]&0x87 == 2 && b[0] >= 8 && b[1] < 0x80 && len(b) >= 2+int(b[1]) { // short, as most are
		w.number, w.value, w.rest = protowire.Number(b[0]>>3), b[2:2+int(b[1]):2+int(b[1])], b[2+int(b[1]):]
		return true
	}
	return w.nextOfAnyLength()
}

func (w *walk) nextOfAnyLength() bool {
	if len(w.rest) == 0 {
		return false
	}
	number, kind, n := protowire.ConsumeTag(w.rest)
	if n < 0 {
		w.broken = true
		return false
	}
	w.number, w.value, w.rest = number, nil, w.rest[n:]
	if kind == protowire.BytesType {
		w.value, n = protowire.ConsumeBytes(w.rest)
	} else {
		n = protowire.ConsumeFieldValue(number, kind, w.rest)
	}
	if n < 0 {
		w.broken = true
		return false
	}
	w.rest = w.rest[n:]
	return true
}

// once keeps the value of a message, and reports whether it is the only one: protobuf merges several.
func (w *walk) once(value *[]byte) bool {
	if w.value == nil {
		return true
	}
	first := *value == nil
	*value = w.value
	return first
}

// text keeps a text, and reports whether it is one. Of several protobuf keeps the last.
func (w *walk) text(text *string) bool {
	if w.value == nil {
		return true
	}
	*text = view(w.value)
	return utf8.Valid(w.value)
}

// entry is one entry of a map.
type entry struct{ key, value []byte }

// read reports whether the bytes are an entry.
func (e *entry) read(message []byte) bool {
	e.key, message = cut(message, entryKey)
	e.value, message = cut(message, entryValue)
	w := walk{rest: message}
	for w.next() {
		switch {
		case w.value == nil:
		case w.number == entryKey:
			e.key = w.value
		case w.number == entryValue:
			e.value = w.value
		}
	}
	return !w.broken
}

// cut takes the text that a message begins with off it, if that is the field of this number, below 16, and shorter than 16 kB. It
// spares walking through what is nearly always written the same way.
func cut(b []byte, number byte) (text, rest []byte) {
	if len(b) < 3 || b[0] != number<<3|byte(protowire.BytesType) {
		return nil, b
	}
	begin, length := 2, int(b[1])
	if length >= 0x80 {
		begin, length = 3, length&0x7f|int(b[2])<<7
	}
	end := begin + length
	if length >= 1<<14 || end > len(b) {
		return nil, b
	}
	return b[begin:end:end], b[end:]
}
