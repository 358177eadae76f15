package authz

import (
	"slices"
	"unicode/utf8"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Codec returns gRPC's protobuf codec, but one that leaves checks and their answers to the Server, which reads and writes
// their bytes itself.
func Codec() encoding.CodecV2 {
	return codec{encoding.GetCodecV2(protocodec.Name)}
}

type codec struct{ encoding.CodecV2 }

// Unmarshal never fails on a check: Envoy would take the error for a failure of ratelimitd.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	check, ok := v.(*call)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	check.message = data.MaterializeToBuffer(mem.DefaultBufferPool()) // no copy of what came in one frame
	check.data = check.message.ReadOnlyData()
	return nil
}

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	check, ok := v.(*call)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	answer := mem.NewBuffer(check.answer, &answers)
	check.release()
	return mem.BufferSlice{answer}, nil
}

// decodeCheck decodes any bytes. Envoy copies some client bytes as they are, such as the server name of TLS, into fields that
// protobuf wants in UTF-8. gRPC would answer those with an error before any handler runs, and an Envoy with
// failure_mode_allow then lets the client pass. Here each byte that is not UTF-8 becomes "!", as in the headers that Envoy
// itself cleans; what is no protobuf at all becomes an empty request.
func decodeCheck(data []byte) *authv3.CheckRequest {
	check := &authv3.CheckRequest{}
	if proto.Unmarshal(data, check) == nil {
		return check
	}
	repaired := slices.Clone(data)
	repairUTF8(repaired, check.ProtoReflect().Descriptor(), protowire.DefaultRecursionLimit)
	if proto.Unmarshal(repaired, check) != nil {
		return &authv3.CheckRequest{}
	}
	return check
}

// repairUTF8 replaces, in place, the bytes that are not UTF-8 in the string fields of an encoded message and, to that
// depth, of the messages in it. It stops where the encoding makes no sense.
func repairUTF8(message []byte, descriptor protoreflect.MessageDescriptor, depth int) {
	for len(message) > 0 && depth > 0 {
		number, wireType, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(number, wireType, message)
		if size < 0 {
			return
		}
		field := descriptor.Fields().ByNumber(number)
		if wireType == protowire.BytesType && field != nil {
			value, _ := protowire.ConsumeBytes(message)
			switch field.Kind() {
			case protoreflect.StringKind:
				replaceInvalid(value)
			case protoreflect.MessageKind:
				repairUTF8(value, field.Message(), depth-1)
			}
		}
		message = message[size:]
	}
}

func replaceInvalid(text []byte) {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			text[i] = '!'
		}
		i += size
	}
}
