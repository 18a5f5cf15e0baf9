package bmc

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/testreq"
)

// simulator is a BMC by OpenIPMI's ipmi_sim, whose power is a file: "1" or "0". With the file deaf beside it, commands
// are accepted and do nothing.
type simulator struct {
	t      *testing.T
	folder string
	port   int
}

const chassisScript = `#!/bin/sh
cd %s || exit 1
echo "$*" >> commands
case "$1" in
get) shift; for what; do case $what in power) echo "power:$(cat power)";; *) echo "$what:0";; esac; done;;
set) shift; while [ $# -gt 0 ]; do
	[ -e deaf ] || case $1 in power) echo $2 > power;; shutdown) echo 0 > power;; esac
	shift 2; done;;
esac
`

const lanConfig = `name "node"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 %d
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid %s
  endlan
  chassis_control "%s/chassis"
  user 1 true "" "test" user 10 none md2 md5 straight
  user 2 true "%s" "%s" admin 10 none md2 md5 straight
`

func newSimulator(t *testing.T) *simulator {
	t.Helper()
	testreq.Program(t, ipmiProgram)
	program := testreq.Program(t, "ipmi_sim")
	folder, err := os.MkdirTemp("", "bragg-bmc") // a path without blanks
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	s := &simulator{t: t, folder: folder, port: freePort(t)}
	s.write("lan.conf", fmt.Sprintf(lanConfig, s.port, strings.ReplaceAll(uuidDMI, "-", ""), folder, testUser, testPassword))
	s.write("fru", string(fruData("7XK0Q13")))
	s.write("commands.txt", fmt.Sprintf("mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\n"+
		"mc_add_fru_data 0x20 0 256 file 0 \"%s/fru\"\nmc_enable 0x20\n", folder))
	s.write("chassis", fmt.Sprintf(chassisScript, folder))
	s.write("power", "1\n")
	if err := os.Chmod(filepath.Join(folder, "chassis"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-n", "-c", filepath.Join(folder, "lan.conf"), "-f", filepath.Join(folder, "commands.txt"), "-s", folder)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &log, &log, folder
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("ipmi_sim: %s", log.String())
		}
	})
	return s
}

func freePort(t *testing.T) int {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).Port
}

func (s *simulator) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *simulator) on() bool {
	text, err := os.ReadFile(filepath.Join(s.folder, "power"))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(text)) == "1"
}

// commands returns how often the power was set.
func (s *simulator) commands() int {
	text, _ := os.ReadFile(filepath.Join(s.folder, "commands"))
	return strings.Count(string(text), "set ")
}

// config is a target file's view of the simulator, through a port of this machine.
func (s *simulator) config(port int) target.Config {
	return target.Config{
		Allow:       target.Allow{NodePower: true},
		Credentials: map[string]target.Credential{"bmc": {User: testUser, Secret: secretFile(s.t, testPassword)}},
		Nodes: []target.NodeConfig{{ID: "left", UUID: uuidDMI, BMC: &target.BMC{
			// It knows no better suite than 3, and asking it for the best takes five seconds.
			Protocol: target.IPMI, Address: "127.0.0.1:" + strconv.Itoa(port), Credential: "bmc", CipherSuite: 3,
		}}},
	}
}

// fruData is a FRU (IPMI Platform Management FRU Information Storage Definition 1.0) whose product has a serial number.
func fruData(serial string) []byte {
	area := []byte{1, 0, 25} // format, length, language
	for _, field := range []string{"Contoso", "3500", "P-1", "2", serial, "tag", ""} {
		area = append(append(area, 0xc0|byte(len(field))), field...)
	}
	area = append(area, 0xc1)
	for (len(area)+1)%8 != 0 {
		area = append(area, 0)
	}
	area[1] = byte((len(area) + 1) / 8)
	head := []byte{1, 0, 0, 0, 1, 0, 0}
	out := append(append(head, checksum(head)), append(area, checksum(area))...)
	return append(out, make([]byte, 256-len(out))...)
}

func checksum(data []byte) byte {
	var sum byte
	for _, b := range data {
		sum += b
	}
	return -sum
}

// way is a way to a BMC over UDP on which bad things happen.
type way struct {
	Port int

	mu     sync.Mutex
	drop   int // how many datagrams are lost from now on; -1: all
	delay  time.Duration
	double bool
	spoil  float64 // share of answers that come as garbage
	random *rand.Rand
	client net.Addr
}

func newWay(t *testing.T, to int) *way {
	t.Helper()
	front, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	back, err := net.Dial("udp", "127.0.0.1:"+strconv.Itoa(to))
	if err != nil {
		t.Fatal(err)
	}
	w := &way{Port: front.LocalAddr().(*net.UDPAddr).Port, random: rand.New(rand.NewPCG(1, 2))}
	var wait sync.WaitGroup
	wait.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := front.ReadFrom(buf)
			if err != nil {
				return
			}
			w.mu.Lock()
			w.client = from
			w.mu.Unlock()
			w.pass(&wait, bytes.Clone(buf[:n]), 0, func(p []byte) { _, _ = back.Write(p) })
		}
	})
	wait.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, err := back.Read(buf)
			if err != nil {
				return
			}
			w.mu.Lock()
			to, spoil := w.client, w.spoil
			w.mu.Unlock()
			w.pass(&wait, bytes.Clone(buf[:n]), spoil, func(p []byte) { _, _ = front.WriteTo(p, to) })
		}
	})
	t.Cleanup(func() {
		_ = front.Close()
		_ = back.Close()
		wait.Wait()
	})
	return w
}

func (w *way) pass(wait *sync.WaitGroup, p []byte, spoil float64, send func([]byte)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.drop != 0 {
		w.drop = max(-1, w.drop-1)
		return
	}
	if w.random.Float64() < spoil {
		for i := range p {
			p[i] = byte(w.random.Uint32())
		}
		p = p[:w.random.IntN(len(p)+1)]
	}
	times := 1
	if w.double {
		times = 2
	}
	for range times {
		if w.delay == 0 {
			send(p)
			continue
		}
		wait.Go(func() {
			time.Sleep(w.delay)
			send(p)
		})
	}
}

func (w *way) set(change func(*way)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}
