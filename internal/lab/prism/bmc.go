package prism

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/braggdev/bragg/internal/lab/chassis"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

// BMC is the Redfish service of one host, which switches its power: CutHost and RestoreHost.
type BMC struct {
	HostID, Host, Serial, UUID string
	Address                    string // 127.0.0.1:port, with the certificate of the emulator

	server *http.Server
	served chan struct{}
}

// BMCs starts the BMCs of all hosts on loopback, for the user chassis.User with the password of the emulator. Close ends them.
func (e *Emulator) BMCs() ([]*BMC, error) {
	var hosts []state.Host
	e.State.Read(func(d *state.Data) {
		for _, h := range d.Hosts {
			hosts = append(hosts, *h)
		}
	})
	for _, h := range hosts {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		b := &BMC{HostID: h.ID, Host: h.Name, Serial: h.Serial, UUID: h.ID, Address: l.Addr().String(), served: make(chan struct{})}
		machine := chassis.Machine{Name: h.Name, UUID: h.ID, Serial: h.Serial, BMC: netip.MustParseAddr("127.0.0.1")}
		b.server = &http.Server{
			Handler: chassis.Redfish(machine, e.Credentials.Password, switched{e, h.ID}), ReadHeaderTimeout: 10 * time.Second,
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{e.certificate}, MinVersion: tls.VersionTLS12}, ErrorLog: log.New(io.Discard, "", 0),
		}
		go func() {
			defer close(b.served)
			_ = b.server.ServeTLS(l, "", "")
		}()
		e.bmcs = append(e.bmcs, b)
	}
	return e.bmcs, nil
}

func (e *Emulator) closeBMCs() {
	for _, b := range e.bmcs {
		_ = b.server.Close()
		<-b.served
	}
}

// switched is a host as its BMC sees it.
type switched struct {
	emulator *Emulator
	host     string
}

// Power implements chassis.Chassis.
func (s switched) Power() chassis.Power {
	power := chassis.PowerOff
	s.emulator.State.Read(func(d *state.Data) {
		if h := d.Host(s.host); h != nil && h.Up {
			power = chassis.PowerOn
		}
	})
	return power
}

// Reset implements chassis.Chassis. A host has no system of its own, so that a graceful shutdown is a cut.
func (s switched) Reset(_ context.Context, kind chassis.Reset) error {
	if err := chassis.CheckReset(kind); err != nil {
		return err
	}
	switch kind {
	case chassis.ResetOn, chassis.ResetForceOn:
		return s.emulator.RestoreHost(s.host)
	case chassis.ResetForceRestart, chassis.ResetPowerCycle:
		if err := s.emulator.CutHost(s.host); err != nil {
			return err
		}
		return s.emulator.RestoreHost(s.host)
	case chassis.ResetPushPowerButton:
		if s.Power() == chassis.PowerOff {
			return s.emulator.RestoreHost(s.host)
		}
	}
	return s.emulator.CutHost(s.host)
}
