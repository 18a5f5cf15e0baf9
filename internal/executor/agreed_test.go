package executor

import (
	"testing"
	"time"
)

// TestStartIsTheMomentAgreed: however late this program wakes up, intervals count from it; what ended before never reached it.
func TestStartIsTheMomentAgreed(t *testing.T) {
	agreed := time.Now()
	if got := earlier(agreed, agreed.Add(3*time.Second)); !got.Equal(agreed) {
		t.Errorf("woken late: %v", got.Sub(agreed))
	}
	if got := earlier(agreed, agreed.Add(-time.Second)); !got.Equal(agreed.Add(-time.Second)) {
		t.Errorf("ended before: %v", got.Sub(agreed))
	}
}
