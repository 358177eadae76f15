package authz

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// What follows appends encoded fields. Field numbers are those of Envoy's .proto files, all below 16.

func appendTag(b []byte, field byte, kind protowire.Type) []byte {
	return append(b, field<<3|byte(kind))
}

func appendText[T string | []byte](b []byte, field byte, text T) []byte {
	b = binary.AppendUvarint(appendTag(b, field, protowire.BytesType), uint64(len(text)))
	return append(b, text...)
}

func appendNumber(b []byte, field byte, n uint64) []byte {
	return binary.AppendUvarint(appendTag(b, field, protowire.VarintType), n)
}

func appendDouble(b []byte, field byte, n float64) []byte {
	return binary.LittleEndian.AppendUint64(appendTag(b, field, protowire.Fixed64Type), math.Float64bits(n))
}

// open begins a field that is a message; shut, given the length that the bytes then have, ends it.
func open(b []byte, field byte) []byte {
	return append(appendTag(b, field, protowire.BytesType), 0) // a length of one byte is enough for most
}

func shut(b []byte, begin int) []byte {
	length := len(b) - begin
	if length < 0x80 {
		b[begin-1] = byte(length)
		return b
	}
	var varint [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(varint[:], uint64(length))
	b = append(b, varint[:n-1]...) // to be overwritten
	copy(b[begin-1+n:], b[begin:begin+length])
	copy(b[begin-1:], varint[:n])
	return b
}
