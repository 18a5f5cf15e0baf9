package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"

	"github.com/braggdev/bragg/internal/lab/cable"
	"github.com/braggdev/bragg/internal/lab/chassis"

	"golang.org/x/sys/unix"
)

// Lines that go to the keeper on its standard input.
const (
	orderGo   = "go"   // its process is recorded
	orderStay = "stay" // outlive the process that created the lab
)

// Descriptor on which the keeper has the machine's network namespace, beside that of progress.
const outsideFile = 4

// message is one line that a keeper writes until the lab is up.
type message struct {
	Say       string `json:"say,omitempty"`
	Connected bool   `json:"connected,omitempty"` // the subnet is taken
	Up        bool   `json:"up,omitempty"`
	Fault     string `json:"fault,omitempty"`
}

// keeper is the first process of a lab.
type keeper struct {
	lab     *Lab
	nursery *nursery
	hosts   []*host

	mu       sync.Mutex
	progress io.Writer // nil once the reader is gone
}

func runKeeper(dir string) error {
	progress := os.NewFile(progressFile, "progress")
	outside := os.NewFile(outsideFile, "network")
	unix.CloseOnExec(progressFile)
	unix.CloseOnExec(outsideFile)
	orders := bufio.NewReader(os.Stdin)
	if line, err := orders.ReadString('\n'); err != nil || strings.TrimSpace(line) != orderGo {
		return errors.New("parent process exited")
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGTERM)
	// Without these a connection that breaks would end the lab.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGPIPE)
	l, err := load(filepath.Dir(dir), filepath.Base(dir))
	if err != nil {
		return err
	}
	k := &keeper{lab: l, progress: progress}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.follow(orders, stop)
		cancel()
	}()
	if err := k.serve(ctx, outside); err != nil {
		k.send(message{Fault: err.Error()})
		return err
	}
	k.send(message{Up: true})
	k.mu.Lock()
	k.progress = nil
	err = progress.Close()
	k.mu.Unlock()
	if err != nil {
		return err
	}
	<-ended
	k.end()
	return nil
}

// follow returns when the lab shall end: by a signal, or because the parent process exited without an order to stay.
func (k *keeper) follow(orders *bufio.Reader, stop <-chan os.Signal) {
	gone := make(chan struct{})
	go func() {
		for {
			line, err := orders.ReadString('\n')
			if strings.TrimSpace(line) == orderStay {
				return
			}
			if err != nil {
				close(gone)
				return
			}
		}
	}()
	select {
	case <-gone:
	case <-stop:
	}
}

// end removes the lab: the folder here, everything else with this process.
func (k *keeper) end() {
	for _, h := range k.hosts {
		if err := h.Reset(context.Background(), chassis.ResetForceOff); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if err := removeFolder(k.lab); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func (k *keeper) send(n message) {
	if n.Say != "" {
		fmt.Fprintln(os.Stderr, n.Say)
	}
	text, err := json.Marshal(n)
	if err != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.progress != nil {
		_, _ = k.progress.Write(append(text, '\n')) // the reader is gone
	}
}

// serve builds everything and returns when all hosts are up.
func (k *keeper) serve(ctx context.Context, outside *os.File) error {
	if err := freshMounts(); err != nil {
		return err
	}
	if err := errors.Join(buildSwitch(k.lab, outside), outside.Close()); err != nil {
		return err
	}
	k.send(message{Connected: true})
	k.nursery = newNursery()
	for _, h := range k.lab.Hosts {
		k.hosts = append(k.hosts, &host{Host: h, lab: k.lab, nursery: k.nursery, power: chassis.PowerOff})
	}
	server, err := findProgram("dnsmasq")
	if err != nil {
		return err
	}
	supervise(ctx, k.nursery, append([]string{server}, dhcpArguments(k.lab)...)...)
	if err := k.serveControl(); err != nil {
		return err
	}
	if err := k.serveBMCs(ctx); err != nil {
		return err
	}
	k.send(message{Say: "switch, DHCP and BMCs are up"})
	booted := make(chan error, len(k.hosts))
	for _, h := range k.hosts {
		go func() {
			err := h.Reset(ctx, chassis.ResetOn)
			if err == nil {
				err = h.waitUp(ctx)
			}
			if err == nil {
				k.send(message{Say: h.Name + " is up"})
			}
			booted <- err
		}()
	}
	var faults []error
	for range k.hosts {
		faults = append(faults, <-booted)
	}
	return errors.Join(faults...)
}

// dhcpArguments make dnsmasq a DHCP server and nothing else. It takes no configuration of the machine.
func dhcpArguments(l *Lab) []string {
	return []string{
		"--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--user=root", "--pid-file=", "--log-facility=-",
		"--interface=" + switchName, "--bind-interfaces", "--except-interface=lo", "--no-hosts", "--no-resolv", "--no-ping",
		"--dhcp-authoritative", "--dhcp-leasefile=" + l.LeaseFile(), "--dhcp-option=option:router", "--dhcp-lease-max=1000",
		fmt.Sprintf("--dhcp-range=%s,%s,30m", cable.Nth(l.Subnet, dhcpAddress), cable.Nth(l.Subnet, dhcpAddressLast)),
	}
}
