package lab

import (
	"os"
	"os/exec"
	"testing"
)

// A process is known by its start, so that another with its id is not killed.
func TestKillKnowsItsProcess(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "86399")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := processNow(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	other := process{p.ID, p.Start + 1}
	if err := kill(other); err != nil || other.runs() || !p.runs() {
		t.Errorf("%v: another process was hurt", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	if err := kill(p); err != nil || p.runs() {
		t.Errorf("%v: it runs", err)
	}
	<-done
	if err := kill(p); err != nil {
		t.Errorf("again: %v", err)
	}
}

func FuzzStatFields(f *testing.F) {
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(own)
	f.Add([]byte("1 (a) b) S 1 2 3"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, text []byte) {
		fields, err := statFields(text)
		if err == nil && len(fields) < 20 {
			t.Errorf("%q", fields)
		}
	})
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"format":1,"name":"x","dir":"/x"}`))
	f.Add([]byte(`{"keeper":{"id":-1}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		labs := t.TempDir()
		if err := os.Mkdir(labs+"/x", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(labs+"/x/"+stateFile, text, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := load(labs, "x")
		if err == nil && (l.Name != "x" || l.Dir != labs+"/x" || l.Format != stateFormat) {
			t.Errorf("%+v", l)
		}
	})
}
