//go:build unix

package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/agent/client"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
)

// agentProcess starts this test's binary as an agent with one end of a socket pair and a listener for metrics.
func agentProcess(t *testing.T) (conn net.Conn, command *exec.Cmd, said *bytes.Buffer) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	near, far := os.NewFile(uintptr(fds[0]), "near"), os.NewFile(uintptr(fds[1]), "far")
	defer near.Close()
	defer far.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	metrics, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer metrics.Close()
	config, err := json.Marshal(Config{
		VM: "DB-0001", ConnectionFD: 3, MetricsFD: 4, VCPUs: 1, Devices: []load.Device{{Name: "/dev/sdb", Path: "disk"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	said = &bytes.Buffer{}
	command = exec.Command(os.Args[0], "__agent", string(config))
	command.ExtraFiles, command.Stderr = []*os.File{far, metrics}, said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	if conn, err = net.FileConn(near); err != nil {
		t.Fatal(err)
	}
	return conn, command, said
}

// The process ends when its connection closes, even with a load that does not want to stop.
func TestProcessEndsWithItsConnection(t *testing.T) {
	conn, command, said := agentProcess(t)
	c := client.New(conn, client.Options{})
	hello, err := c.Hello(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if hello.PID != command.Process.Pid || hello.VM != "DB-0001" {
		t.Errorf("got %+v", hello)
	}
	if text := get(t, "http://"+hello.MetricsAddress+"/metrics"); !strings.Contains(text, "node_disk_reads_completed_total{device=\"sdb\"") {
		t.Errorf("metrics are %q", text)
	}
	w := workload()
	w.Generator = "stuck"
	w.Devices = nil
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context(), w, newCollector()) }()
	waitUntil(t, func() bool {
		h, err := c.Health(t.Context())
		return err == nil && len(h.Workloads) == 1
	})
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("the agent ended with %v: %s", err, said)
	}
	if err := <-done; !errors.Is(err, load.ErrLost) {
		t.Errorf("the run ended with %v", err)
	}
}

// A node that shuts down asks its VMs to end.
func TestProcessEndsWhenAsked(t *testing.T) {
	conn, command, said := agentProcess(t)
	c := client.New(conn, client.Options{})
	if _, err := c.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("the agent ended with %v: %s", err, said)
	}
	<-c.Lost()
	_ = c.Close()
}

func get(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCommandRefusesBadArguments(t *testing.T) {
	for name, args := range map[string][]string{
		"none": nil, "two": {"{}", "{}"}, "no JSON": {"hello"}, "no connection": {"{}"}, "not inherited": {`{"connection_fd":2}`},
	} {
		var said bytes.Buffer
		code := Command(t.Context(), args, Program{Stderr: &said})
		if code != diag.ExitUsage || said.Len() == 0 {
			t.Errorf("%s: exit code %d, said %q", name, code, &said)
		}
	}
}
