package audit

import (
	"fmt"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/unit"
)

// responseFactor is how much larger p99 of response time must be than p99 of service time.
const responseFactor = 2.0

var responseBeyondService = Rule{
	Code:    "response-beyond-service",
	Summary: "operations waited long before they could be submitted",
	Documentation: "Service time starts when an operation is submitted, response time when it is due. Where the second " +
		"is much larger, operations queued behind slow ones: users feel the response time, and service time alone " +
		"hides it.",
	Example: `p99 of reads of OLTP is 2.55 ms in service and 18.9 ms in response time: operations waited before they were submitted.`,
	Check:   checkResponse,
}

func checkResponse(in *Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range measured(in) {
		for d := range l.Directions {
			t := &l.Directions[d]
			if t.Service == nil || t.Response == nil || t.Service.Count() == 0 {
				continue
			}
			service, response := t.Service.Quantile(0.99), t.Response.Quantile(0.99)
			if response < responseFactor*service {
				continue
			}
			list = append(list, finding.Finding{Severity: finding.Info, Subject: l.Workload, FromNanos: l.FromNanos, ToNanos: l.ToNanos,
				Claim: fmt.Sprintf("p99 of %ss of %s is %s in service and %s in response time: operations waited before they were submitted.",
					l.Engine().Operation(d), in.name(l), unit.FormatLatency(service), unit.FormatLatency(response)),
				Advice: "Judge by response time; compare service time only with tools that measure nothing else.",
			})
		}
	}
	return list
}
