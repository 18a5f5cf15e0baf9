package fiojob_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// Names of Windows, whatever system this test runs on.
func TestDriveLetters(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  []string // where the system has drives
		other []string // where it has none
		warns bool
	}{
		{`C\:\data\file`, []string{`C:\data\file`}, []string{`C:\data\file`}, false},
		{`C:\data\file`, []string{`C:\data\file`}, []string{`C`, `\data\file`}, true},
		{`c:/data/file`, []string{`c:/data/file`}, []string{`c`, `/data/file`}, true},
		{`C:\a:D:\b`, []string{`C:\a`, `D:\b`}, []string{`C`, `\a`, `D`, `\b`}, true},
		{`C\:\a:D\:\b`, []string{`C:\a`, `D:\b`}, []string{`C:\a`, `D:\b`}, false},
		{`C\:\a:D:\b`, []string{`C:\a`, `D:\b`}, []string{`C:\a`, `D`, `\b`}, true},
		{`\\.\PhysicalDrive1`, []string{`\\.\PhysicalDrive1`}, []string{`\\.\PhysicalDrive1`}, false},
		{`\\.\PhysicalDrive1:\\.\PhysicalDrive2`, []string{`\\.\PhysicalDrive1`, `\\.\PhysicalDrive2`}, []string{`\\.\PhysicalDrive1`, `\\.\PhysicalDrive2`}, false},
		{`a:b:c`, []string{`a`, `b`, `c`}, []string{`a`, `b`, `c`}, false},
		{`data:file`, []string{`data`, `file`}, []string{`data`, `file`}, false},
		{`ab:/c`, []string{`ab`, `/c`}, []string{`ab`, `/c`}, false},
	} {
		for _, windows := range []bool{true, false} {
			want := c.other
			if windows {
				want = c.want
			}
			file, list := fiojob.Parse("job.fio", "[job]\nsize=1m\nfilename="+c.text+"\n", fiojob.Options{Windows: windows})
			if err := list.Err(); err != nil {
				t.Errorf("%s: %v", c.text, err)
				continue
			}
			j := file.Jobs()[0]
			if !slices.Equal(j.Filenames, want) {
				t.Errorf("%s on Windows %v: %q, want %q", c.text, windows, j.Filenames, want)
			}
			if warns := len(list) > 0; windows && warns != c.warns {
				t.Errorf("%s: warnings %v", c.text, list)
			}
			// What is printed for fio reads as the same names there, too.
			printed := strings.Join(j.Printed(nil), "\n")
			again, _ := fiojob.Parse("job.fio", "[job]\nsize=1m\n"+printed+"\n", fiojob.Options{Reading: syntax.Exact, Windows: windows})
			if got := again.Jobs()[0].Filenames; !slices.Equal(got, want) {
				t.Errorf("%s is printed as %s, which names %q", c.text, printed, got)
			}
		}
	}
	file, _ := fiojob.Parse("job.fio", "[job]\nrw=read\nsize=1m\ndirectory=D:\\data\n", fiojob.Options{Windows: true})
	j := file.Jobs()[0]
	if got := j.Directories(); !slices.Equal(got, []string{`D:\data`}) {
		t.Errorf("directories %q", got)
	}
	exact, _ := fiojob.Parse("job.fio", "[job]\nsize=1m\nfilename=C:\\data\n", fiojob.Options{Windows: true, Reading: syntax.Exact})
	if got := exact.Jobs()[0].Filenames; !slices.Equal(got, []string{"C", `\data`}) {
		t.Errorf("as fio reads it: %q", got)
	}
}
