package prism

import (
	"context"

	"github.com/braggdev/bragg/internal/lab/chassis"
	"github.com/braggdev/bragg/internal/lab/prism/state"
)

// BMC is the Redfish service of one host, which switches its power: CutHost and RestoreHost.
type BMC struct {
	HostID, Host, Serial, UUID string
	*chassis.Service           // with the certificate of the emulator
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
		machine := chassis.Machine{Name: h.Name, UUID: h.ID, Serial: h.Serial}
		service, err := chassis.Serve(machine, e.Credentials.Password, switched{e, h.ID}, e.certificate)
		if err != nil {
			return nil, err
		}
		b := &BMC{HostID: h.ID, Host: h.Name, Serial: h.Serial, UUID: h.ID, Service: service}
		e.bmcs = append(e.bmcs, b)
	}
	return e.bmcs, nil
}

func (e *Emulator) closeBMCs() {
	for _, b := range e.bmcs {
		b.Close()
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

// Reset implements chassis.Chassis.
func (s switched) Reset(_ context.Context, kind chassis.Reset) error {
	return chassis.Switch(kind, s.Power(), func(on bool) error {
		if on {
			return s.emulator.RestoreHost(s.host)
		}
		return s.emulator.CutHost(s.host)
	})
}
