package iperf3

import "testing"

func TestBits(t *testing.T) {
	for text, want := range map[string]int64{"500M": 500_000_000, "10g": 10_000_000_000, "1.5K": 1500, "7": 7, "0": 0} {
		if got, err := parseBits(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "M", "ıı", "1ſ", "-1", "NaN", "1e30G", "1 G"} {
		if got, err := parseBits(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}
