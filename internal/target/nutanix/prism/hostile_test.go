package prism_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/target/nutanix/prism"
)

// A list whose pages hold more than they should ends.
func TestListOfHostilePages(t *testing.T) {
	objects := strings.TrimSuffix(strings.Repeat(`{"extId":"x"},`, 60_000), ",")
	s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"data":[%s],"metadata":{"totalAvailableResults":-1}}`, objects)
	})
	_, err := prism.List[struct{ ExtID string }](t.Context(), s.client(t, prism.Options{}), "vmm", "ahv/config/vms", nil)
	if err == nil || !strings.Contains(err.Error(), "more than") || len(s.seen) > 3 {
		t.Errorf("got %v after %d requests", err, len(s.seen))
	}
}

// The text of a refusal is not decoded where it is larger than any refusal.
func TestHugeRefusal(t *testing.T) {
	s := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"message":"no","data":[`+strings.Repeat("{},", 1<<20)+`{}]}`)
	})
	if err := get(t.Context(), s.client(t, prism.Options{})); !prism.IsStatus(err, http.StatusBadRequest) || strings.Contains(err.Error(), "no") {
		t.Errorf("got %v", err)
	}
}
