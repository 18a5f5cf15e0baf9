package testreq_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/testreq"
)

const root = "../.."

// TestAptUpdateWaits locks lists of the test's own, as another apt does, and releases them.
func TestAptUpdateWaits(t *testing.T) {
	testreq.Program(t, "apt-get")
	testreq.Program(t, "python3")
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "lists", "partial"), 0o755); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "apt.conf")
	text := "Dir::State::lists \"" + dir + "/lists\";\nDir::Etc::sourcelist \"/dev/null\";\nDir::Etc::sourceparts \"/dev/null\";\n" +
		"Dir::Cache \"" + dir + "\";\nAPT::Update::Post-Invoke-Success {};\n#clear APT::Update::Post-Invoke-Success;\n#clear APT::Update::Post-Invoke;\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	update := func(wait string) (*exec.Cmd, *bytes.Buffer) {
		cmd := exec.Command(filepath.Join(root, "tools", "apt-update.sh"))
		cmd.Env = append(os.Environ(), "APT_CONFIG="+config, "WAIT="+wait)
		var said bytes.Buffer
		cmd.Stderr = &said
		return cmd, &said
	}
	// Locks of fcntl belong to a process, so it has to be another one.
	holder := exec.Command("python3", "-c", "import fcntl,sys\nf=open(sys.argv[1],'w')\nfcntl.lockf(f,fcntl.LOCK_EX)\nprint('held',flush=True)\nsys.stdin.read()",
		filepath.Join(dir, "lists", "lock"))
	release, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("the lock: %q, %v", line, err)
	}
	if cmd, said := update("0"); cmd.Run() == nil || !strings.Contains(said.String(), "lock") {
		t.Errorf("with lists that are locked all the time it said %q", said)
	}
	cmd, said := update("300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // not needed for the result: it lets the update find the lock more often than not
	if err := release.Close(); err != nil {
		t.Fatal(err)
	}
	if err := holder.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after the lock was released: %v: %s", err, said)
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)\)|<img src="([^"]+)"`)

// TestDist unpacks the archive in an empty folder: what the README names is there, checksums hold, licences are complete, and
// a scenario from it runs.
func TestDist(t *testing.T) {
	if testing.Short() {
		t.Skip("builds both programs")
	}
	dist := t.TempDir()
	run := func(dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dist, "state"))
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, text)
		}
		return string(text)
	}
	run(root, "make", "dist", "DIST="+dist, "VERSION=test")
	archives, err := filepath.Glob(filepath.Join(dist, "bragg-test-*.tar.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("archives %q, %v", archives, err)
	}
	run(dist, "sha256sum", "-c", archives[0]+".sha256")
	empty := t.TempDir()
	run(empty, "tar", "-xzf", archives[0])
	at := filepath.Join(empty, "bragg-test")
	run(at, "sha256sum", "--quiet", "-c", "SHA256SUMS")
	readme, err := os.ReadFile(filepath.Join(at, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := []string{"LICENSE", "scenarios/db_colocation/test.yml", "licences/go/LICENSE", "licences/vendored/internal/report/page/assets/uplot/LICENSE"}
	for _, m := range link.FindAllStringSubmatch(string(readme), -1) {
		named = append(named, m[1]+m[2])
	}
	for _, name := range named {
		if _, err := os.Stat(filepath.Join(at, name)); err != nil {
			t.Error(err)
		}
	}
	modules := run(root, "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}", "./cmd/bragg", "./cmd/bragg-agent", "./cmd/bragg-lab")
	for _, module := range strings.Fields(modules) {
		if files, err := os.ReadDir(filepath.Join(at, "licences", module)); err != nil || len(files) == 0 {
			t.Errorf("the licence of %s: %v", module, err)
		}
	}
	if out := run(at, "bin/bragg", "--version"); !strings.HasPrefix(out, "bragg test ") {
		t.Errorf("the version is %q", out)
	}
	out := run(at, "bin/bragg", "run", "./scenarios/snapshot_impact", "--rehearse", "1s", "--set", "snapshots=3", "--rehearse-size", "64MiB", "--json")
	if !strings.Contains(out, `"verdict": "PASS"`) {
		t.Errorf("the run of a scenario from the archive: %s", out)
	}
}
