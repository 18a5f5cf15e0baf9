package scenario_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/testreq"
)

// document is a scenario with one workload that names the file job.fio.
const document = plainHead + `vms:
  - g: {template: t}
workloads:
  - w: {vm_group: g, config_file: job.fio}
results: []
setup:
  - test.Wait: {duration_secs: 1}
run:
  - test.Wait: {duration_secs: 1}
`

// folder makes a scenario folder and returns its path.
func folder(t *testing.T, text string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "scenario")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "test.yml"), text)
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func load(path string) (*scenario.Scenario, error) {
	return scenario.Load(context.Background(), scenario.Source{Path: path}, scenario.Options{})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Job files are read from the folder only, whatever the folder holds.
func TestJobFilesThatAreRefused(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	write(t, outside, "secret")
	for name, c := range map[string]struct {
		make func(t *testing.T, path string)
		want string
	}{
		"missing":        {func(*testing.T, string) {}, "no such file or directory"},
		"folder":         {func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o755)) }, "it is a folder, not a file"},
		"named pipe":     {func(t *testing.T, path string) { must(t, syscall.Mkfifo(path, 0o600)) }, "it is a named pipe, not a file"},
		"link outside":   {func(t *testing.T, path string) { must(t, os.Symlink(outside, path)) }, "path escapes from parent"},
		"link upwards":   {func(t *testing.T, path string) { must(t, os.Symlink("../../secret", path)) }, "path escapes from parent"},
		"link to device": {func(t *testing.T, path string) { must(t, os.Symlink("/dev/zero", path)) }, "path escapes from parent"},
		"link to itself": {func(t *testing.T, path string) { must(t, os.Symlink("job.fio", path)) }, "too many"},
		"large": {func(t *testing.T, path string) {
			write(t, path, "")
			must(t, os.Truncate(path, 100<<20))
		}, "it has 104857600 bytes and at most 1048576 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, document)
			c.make(t, filepath.Join(dir, "job.fio"))
			_, err := load(dir)
			if err == nil {
				t.Fatal("it loads")
			}
			if text := explain(err); !strings.Contains(text, c.want) || !strings.Contains(text, ":9:35: error") {
				t.Errorf("got %s, want %q at line 9", text, c.want)
			}
		})
	}
	t.Run("device", func(t *testing.T) {
		dir := folder(t, document)
		if err := syscall.Mknod(filepath.Join(dir, "job.fio"), syscall.S_IFCHR|0o600, 1<<8|5); err != nil {
			testreq.Skip(t, "devices cannot be made here: "+err.Error())
		}
		if _, err := load(dir); err == nil || !strings.Contains(explain(err), "it is a device, not a file") {
			t.Errorf("got %v", err)
		}
	})
}

func TestALinkInsideOfTheFolderIsFollowed(t *testing.T) {
	dir := folder(t, document)
	write(t, filepath.Join(dir, "real.fio"), "[job]\n")
	must(t, os.Symlink("real.fio", filepath.Join(dir, "job.fio")))
	sc, err := load(dir)
	if err != nil {
		t.Fatal(explain(err))
	}
	if sc.Files["job.fio"] != "[job]\n" {
		t.Errorf("the job file is %q", sc.Files["job.fio"])
	}
}

func TestDocumentsThatCannotBeRead(t *testing.T) {
	temp := t.TempDir()
	empty := filepath.Join(temp, "empty")
	must(t, os.Mkdir(empty, 0o755))
	pipe := filepath.Join(temp, "pipe")
	must(t, os.Mkdir(pipe, 0o755))
	must(t, syscall.Mkfifo(filepath.Join(pipe, "test.yml"), 0o600))
	large := filepath.Join(temp, "large")
	must(t, os.Mkdir(large, 0o755))
	write(t, filepath.Join(large, "test.yml"), "")
	must(t, os.Truncate(filepath.Join(large, "test.yml"), 100<<20))
	write(t, filepath.Join(temp, "job.fio"), "[job]\n")
	for path, want := range map[string]string{
		filepath.Join(temp, "nowhere"): "open scenario \"TEMP/nowhere\": no such file or directory",
		empty:                          "read \"TEMP/empty/test.yml\": no such file or directory",
		pipe:                           "read \"TEMP/pipe/test.yml\": it is a named pipe, not a file",
		large:                          "read \"TEMP/large/test.yml\": it has 104857600 bytes and at most 1048576 are allowed",
		filepath.Join(temp, "job.fio"): "open scenario \"TEMP/job.fio\": its name does not end in .yml or .zip",
		"/dev/null":                    "open scenario \"/dev/null\": its name does not end in .yml or .zip",
	} {
		_, err := load(path)
		if err == nil || strings.ReplaceAll(err.Error(), temp, "TEMP") != want {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
		if diag.ExitCode(err) != diag.ExitData {
			t.Errorf("%s: exit code %d", path, diag.ExitCode(err))
		}
	}
	if _, err := scenario.Load(context.Background(), scenario.Source{}, scenario.Options{}); diag.ExitCode(err) != diag.ExitUsage {
		t.Errorf("no source: %v", err)
	}
}

func TestAShippedFolderLoads(t *testing.T) {
	fsys := fstest.MapFS{
		"test.yml": {Data: []byte(document)},
		"job.fio":  {Data: []byte("[job]\n")},
	}
	sc, err := scenario.Load(context.Background(), scenario.Source{FS: fsys, Name: "shipped", Trusted: true}, scenario.Options{})
	if err != nil {
		t.Fatal(explain(err))
	}
	if sc.Dir != "" || sc.Files["job.fio"] != "[job]\n" || sc.Workloads[0].Pos.String() != "shipped/test.yml:9:5" {
		t.Errorf("got dir %q, files %v, position %s", sc.Dir, sc.Files, sc.Workloads[0].Pos)
	}
	delete(fsys, "job.fio")
	_, err = scenario.Load(context.Background(), scenario.Source{FS: fsys, Name: "shipped"}, scenario.Options{})
	if err == nil || !strings.Contains(err.Error(), `read "job.fio": file does not exist`) {
		t.Errorf("got %v", err)
	}
}

func TestACancelledLoadEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := scenario.Load(ctx, scenario.Source{Path: folder(t, plainHead+plainTail)}, scenario.Options{})
	if diag.ExitCode(err) != diag.ExitInterrupted {
		t.Errorf("got %v", err)
	}
}
