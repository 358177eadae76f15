package main

import "testing"

func TestASmallHeapMayGrowMoreThanALargeOne(t *testing.T) {
	for live, want := range map[uint64]int{0: 800, 4 << 20: 800, 16 << 20: 400, 64 << 20: 100, 1 << 40: 100} {
		if got := gcPercent(live); got != want {
			t.Errorf("%d bytes: %d %%, want %d", live, got, want)
		}
	}
}
