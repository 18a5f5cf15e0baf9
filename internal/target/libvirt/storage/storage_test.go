package storage

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/target"
)

func TestVolumeNames(t *testing.T) {
	t.Parallel()
	mark, id := testTag().Mark(), "2373c78c-8b5b-8864-95ab-42187a077144"
	for _, role := range []string{"sda", "sdb", "sdaa", "sdb.1", "sdb.149", "seed", "kernel", "initrd"} {
		o, ok := ParseVolumeName(VolumeName(mark, id, role))
		if want := (Owner{mark, id, role}); !ok || o != want {
			t.Errorf("got %+v, want %+v", o, want)
		}
	}
	good := VolumeName(mark, id, "sdb")
	for _, name := range []string{
		"", good + ".bak", good + "~", "x" + good, strings.ToUpper(good), strings.Replace(good, mark, mark[1:], 1),
		strings.Replace(good, "sdb", "sd", 1), good + "\n", "../" + good, good + ".1.2",
	} {
		if o, ok := ParseVolumeName(name); ok {
			t.Errorf("%q counts as %+v", name, o)
		}
	}
	list := " " + good + "   /pool/" + good + "\n a b   /pool/a b\n bragg-x   /x\n" + good + "\n"
	foreign := func(name string) bool { _, ok := ParseVolumeName(name); return !ok }
	if got := slices.DeleteFunc(parseVolumes([]byte(list)), foreign); !reflect.DeepEqual(got, []string{good}) {
		t.Errorf("got %q", got)
	}
}

func testTag() target.Tag {
	return target.Tag{Controller: "c", Run: "r", Nonce: strings.Repeat("ab", 16)}
}
