package session

import (
	"maps"
	"testing"
)

// No two workloads of a run share a folder for the output of their programs.
func TestOutputFolders(t *testing.T) {
	got := outputFolders([]string{"OLTP", "a b", "a:b", "a_b-2", "a/b", "\u0447\u0442\u0435\u043d\u0438\u0435", "\u0437\u0430\u043f\u0438\u0441\u044c", "OLTP"})
	want := map[string]string{"OLTP": "OLTP", "a b": "a_b", "a:b": "a_b-2", "a_b-2": "a_b-2-2", "a/b": "a_b-3",
		"\u0447\u0442\u0435\u043d\u0438\u0435": "______", "\u0437\u0430\u043f\u0438\u0441\u044c": "______-2"}
	if !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
