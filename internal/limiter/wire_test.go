package limiter

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"
)

// packedNumbers reads what appendRequest has written.
func packedNumbers(t *testing.T, packed []byte) (numbers []uint64) {
	t.Helper()
	for i := 0; i < len(packed); {
		size := map[byte]int{0xcd: 2, 0xce: 4, 0xcf: 8}[packed[i]]
		if size == 0 {
			numbers = append(numbers, uint64(packed[i]))
			i++
			continue
		}
		var whole [8]byte
		copy(whole[8-size:], packed[i+1:])
		numbers = append(numbers, binary.BigEndian.Uint64(whole[:]))
		i += 1 + size
	}
	return numbers
}

func TestEachHitOfARequestButTheLastSaysThatAnotherFollows(t *testing.T) {
	bucket := Limit{Algorithm: TokenBucket, Quota: 1 << 31, Window: 24 * time.Hour, Burst: 127, Tick: 10 * time.Millisecond}
	hits := []Hit{{Limit: bucket, Cost: 1<<32 - 1, Shadow: true}, {Limit: bucket, Cost: 128}, {Limit: bucket, Cost: 65_536, CountDenied: true}}
	want := []uint64{
		4, flagShadow | flagMore, 10, 8_640_000, 1 << 31, 127, 1<<32 - 1,
		4, flagAsk | flagMore, 10, 8_640_000, 1 << 31, 127, 128,
		4, flagAsk | flagCountDenied, 10, 8_640_000, 1 << 31, 127, 65_536,
	}
	if got := packedNumbers(t, appendRequest(nil, hits, time.Time{}, flagAsk)); !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
}

func TestABanAndTheWindowsOfACalendarFollowTheHit(t *testing.T) {
	h := Hit{Limit: Limit{Algorithm: CalendarWindow, Quota: 1, Window: 1, Calendar: Calendar{Period: Month}}, CountDenied: true, Ban: MaxBan}
	got := packedNumbers(t, appendRequest(nil, []Hit{h}, time.Date(2026, time.March, 15, 0, 0, 0, 0, time.UTC), 0))
	want := []uint64{6, flagCountDenied | flagBan, got[2], got[3], 1, 0, 0, uint64(MaxBan.Milliseconds())}
	for _, month := range []time.Month{time.February, time.March, time.April, time.May} {
		want = append(want, uint64(time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC).Unix()))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
}

func TestAReplyIsReadOnlyIfItCanBeAnAnswer(t *testing.T) {
	hits := []Hit{
		{Rule: "a", Limit: Limit{Algorithm: SlidingLog, Quota: 5, Window: time.Minute}, Cost: 1, Ban: time.Minute},
		{Rule: "b", Limit: Limit{Algorithm: SlidingLog, Quota: 0, Window: time.Minute}, Cost: 1},
	}
	for _, c := range []struct {
		reply []int64
		want  []Decision // nil: an error
	}{
		{[]int64{4, 60_000, -2, 0}, []Decision{{Allowed: true, Remaining: 4, ResetAfter: time.Minute}, {RetryAfter: Never}}},
		{[]int64{-1, 90_000, -2, 0}, []Decision{{RetryAfter: 90 * time.Second}, {RetryAfter: Never}}},
		{[]int64{-16 - 5000, 90_000, -2, 0}, []Decision{{RetryAfter: 90 * time.Second, BanLeft: 5 * time.Second}, {RetryAfter: Never}}},
		{[]int64{5, 0, -2, 0}, []Decision{{Allowed: true, Remaining: 5}, {RetryAfter: Never}}},
		{reply: nil},
		{reply: []int64{4, 60_000}},
		{reply: []int64{4, 60_000, -2, 0, 1, 1}},
		{reply: []int64{6, 0, -2, 0}},        // more than the quota
		{reply: []int64{-1, 0, -2, 0}},       // a wait of nothing
		{reply: []int64{-1, 120_001, -2, 0}}, // longer than a window and a clock that stepped back by one
		{reply: []int64{4, -1, -2, 0}},
		{reply: []int64{-2, 1, -2, 0}},
		{reply: []int64{-16 - 5000, 4999, -2, 0}},     // the wait is before the end of the ban
		{reply: []int64{-16 - 60_001, 90_000, -2, 0}}, // longer than the rule's
		{reply: []int64{-16, 1, -2, 0}},
		{reply: []int64{4, 0, 0, 1 << 60}},
	} {
		got, err := decodeReply(hits, c.reply)
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%v is read as %v, %v; want %v", c.reply, got, err, c.want)
		}
	}
}
