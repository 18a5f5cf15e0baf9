package scenario_test

import (
	"archive/zip"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type zipEntry struct {
	name, text string
	mode       fs.FileMode
}

func zipped(t *testing.T, entries ...zipEntry) string {
	t.Helper()
	place := filepath.Join(t.TempDir(), "scenario.zip")
	f, err := os.Create(place)
	must(t, err)
	defer f.Close()
	w := zip.NewWriter(f)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.mode != 0 {
			h.SetMode(e.mode)
		}
		out, err := w.CreateHeader(h)
		must(t, err)
		if !strings.HasSuffix(e.name, "/") {
			_, err = out.Write([]byte(e.text))
			must(t, err)
		}
	}
	must(t, w.Close())
	return place
}

// TestZip: a scenario is the archive itself or the one folder in it.
func TestZip(t *testing.T) {
	const job = "[j]\nrw=read\n"
	for name, entries := range map[string][]zipEntry{
		"flat":       {{name: "test.yml", text: document}, {name: "job.fio", text: job}},
		"one folder": {{name: "my/"}, {name: "my/test.yml", text: document}, {name: "my/job.fio", text: job}, {name: "__MACOSX/my/test.yml", text: "x"}},
	} {
		sc, err := load(zipped(t, entries...))
		if err != nil {
			t.Errorf("%s: %s", name, explain(err))
		} else if sc.Files["job.fio"] != job {
			t.Errorf("%s: files %q", name, sc.Files)
		}
	}
}

func TestZipsThatAreRefused(t *testing.T) {
	doc := zipEntry{name: "test.yml", text: document}
	for name, c := range map[string]struct {
		entries []zipEntry
		want    string
	}{
		"traversal":    {[]zipEntry{doc, {name: "../../job.fio", text: "[j]\n"}}, "leads out of it"},
		"absolute":     {[]zipEntry{doc, {name: "/etc/job.fio", text: "[j]\n"}}, "leads out of it"},
		"twice":        {[]zipEntry{doc, {name: "job.fio", text: "[j]\n"}, doc}, `entry "test.yml" twice`},
		"a link":       {[]zipEntry{doc, {name: "job.fio", text: "/etc/passwd", mode: fs.ModeSymlink | 0o777}}, "is a link"},
		"bomb":         {[]zipEntry{doc, {name: "job.fio", text: strings.Repeat("#", 50<<20)}}, "at most 1048576"},
		"large":        {[]zipEntry{{name: "test.yml", text: strings.Repeat("#", 50<<20)}}, "at most 1048576"},
		"empty":        {nil, "has no test.yml"},
		"two folders":  {[]zipEntry{{name: "a/test.yml", text: document}, {name: "b/test.yml", text: document}}, "has no test.yml"},
		"deep":         {[]zipEntry{{name: "a/b/test.yml", text: document}}, "has no test.yml"},
		"deep folders": {[]zipEntry{doc, {name: strings.Repeat("a/", 40) + "x", text: "x"}}, "more than 512 bytes or 32 folders"},
		"long name":    {[]zipEntry{doc, {name: strings.Repeat("a", 600), text: "x"}}, "more than 512 bytes"},
		"no job":       {[]zipEntry{doc}, "job.fio"},
	} {
		if _, err := load(zipped(t, c.entries...)); err == nil || !strings.Contains(explain(err), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	place := filepath.Join(t.TempDir(), "no.zip")
	write(t, place, "this is not an archive")
	if _, err := load(place); err == nil || !strings.Contains(explain(err), "read zip file") {
		t.Errorf("no archive: %v", err)
	}
}
