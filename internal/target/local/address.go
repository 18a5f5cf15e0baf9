package local

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"sync"
)

// addressPool gives each VM an address in 127/8 that is unique among all VMs and runs on this machine. A reservation is a
// socket with an abstract name that contains the address: the kernel keeps it unique, and removes it when the program ends,
// so that no reservation can be left behind.
type addressPool struct {
	mu   sync.Mutex
	held map[string]*reservation // by VM id
}

type reservation struct {
	address string
	socket  net.Listener
}

const (
	addressesMin = 1 << 16 // offset in 127/8: 127.0.0.0/16 is reserved for others
	addressCount = 1<<24 - addressesMin - 256
	addressTries = 1024
)

func newAddressPool() *addressPool { return &addressPool{held: map[string]*reservation{}} }

// reserve returns the address of a VM. wanted is its former address; an error if that is now in use.
func (a *addressPool) reserve(id, wanted string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.held[id]; r != nil {
		return r.address, nil
	}
	if wanted != "" {
		if err := a.try(id, wanted); err != nil {
			return "", fmt.Errorf("reserve address %s: it is in use by another run", wanted)
		}
		return wanted, nil
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	start := h.Sum64()
	for i := range uint64(addressTries) {
		n := addressesMin + (start+i)%addressCount
		last := byte(n)
		if last == 0 || last == 255 {
			continue // would look like a network or broadcast address
		}
		address := net.IPv4(127, byte(n>>16), byte(n>>8), last).String()
		if a.try(id, address) == nil {
			return address, nil
		}
	}
	return "", errors.New("reserve address: all are in use")
}

// try reserves one address. The caller holds the lock.
func (a *addressPool) try(id, address string) error {
	socket, err := net.Listen("unix", "@bragg/vm-address/"+address)
	if err != nil {
		return err
	}
	// A listener of another program on this address would answer instead of the VM.
	probe, err := net.Listen("tcp4", net.JoinHostPort(address, "0"))
	if err != nil {
		_ = socket.Close()
		return err
	}
	_ = probe.Close()
	a.held[id] = &reservation{address, socket}
	return nil
}

func (a *addressPool) release(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.held[id]; r != nil {
		_ = r.socket.Close()
		delete(a.held, id)
	}
}

func (a *addressPool) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, r := range a.held {
		_ = r.socket.Close()
		delete(a.held, id)
	}
}
