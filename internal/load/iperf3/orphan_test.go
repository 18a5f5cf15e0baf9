package iperf3_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/iperf3"
	"github.com/braggdev/bragg/internal/load/loadtest"
)

// helper is another process of this test binary, which is both ends of a load until it is killed.
func helper() {
	w := load.Workload{Name: "w", Options: map[string]string{"bitrate": "10M"}, IntervalLength: 100 * time.Millisecond,
		Remote: load.Remote{Serves: true, Address: "127.0.0.1", Peers: []load.Peer{{VM: "client"}}}}
	in, err := iperf3.Generator{}.Prepare(context.Background(), w)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	w.Remote = load.Remote{Peers: []load.Peer{{VM: "server", Address: "127.0.0.1", Port: in.(load.Server).Ports()[0]}}}
	loadtest.BeHelper(iperf3.Generator{}, w)
}

// TestProgramsDieWithUs kills a process that runs a server and a client, as power off does with an agent.
func TestProgramsDieWithUs(t *testing.T) {
	needIperf(t)
	mark := helperServes + "=" + fmt.Sprint(os.Getpid(), time.Now().UnixNano())
	loadtest.Orphans(t, []string{mark}, 3, func() {
		if got := having(mark); len(got) != 2 {
			t.Errorf("iperf3 processes %v, want a server and a client", got)
		}
	}, func() []string { return having(mark) })
}

// having lists processes of iperf3 with a variable in their environment.
func having(variable string) (list []string) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		name, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "comm"))
		text, err := os.ReadFile(path)
		if err == nil && string(name) == "iperf3\n" && strings.Contains(string(text), variable+"\x00") {
			list = append(list, strings.Split(path, "/")[2])
		}
	}
	return list
}
