package limiter

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

func TestAHitIsPackedInTwentyTwoBytes(t *testing.T) {
	h := Hit{
		Limit:  Limit{Algorithm: TokenBucket, Quota: 1 << 31, Window: 24 * time.Hour, Burst: 5, Tick: 10 * time.Millisecond},
		Cost:   1<<32 - 1,
		Shadow: true,
	}
	want := []byte{9, 4, 1, 0, 0, 0, 10, 0, 0x83, 0xd6, 0, 0x80, 0, 0, 0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff}
	if got := appendHit([]byte{9}, &h, time.Time{}); !bytes.Equal(got, want) || len(got) != 1+hitSize {
		t.Errorf("% x, want % x", got, want)
	}
}

func TestABanAndTheWindowsOfACalendarFollowTheHit(t *testing.T) {
	h := Hit{Limit: Limit{Algorithm: CalendarWindow, Quota: 1, Window: 1, Calendar: Calendar{Period: Month}}, CountDenied: true, Ban: MaxBan}
	got := appendHit(nil, &h, time.Date(2026, time.March, 15, 0, 0, 0, 0, time.UTC))
	if got[0] != 6 || got[1] != flagCountDenied|flagBan || len(got) != hitSize+6+4*5 {
		t.Fatalf("% x", got)
	}
	want := []byte{7, 0x5c, 0xd7, 0x88, 0}
	want = append([]byte{0}, want...)
	for _, month := range []time.Month{time.February, time.March, time.April, time.May} {
		want = appendUint(want, 5, time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC).Unix())
	}
	if !bytes.Equal(got[hitSize:], want) {
		t.Errorf("% x, want % x", got[hitSize:], want)
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
