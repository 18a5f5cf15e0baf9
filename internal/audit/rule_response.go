package audit

import (
	"github.com/braggdev/bragg/internal/analysis"
	"github.com/braggdev/bragg/internal/audit/rule"
	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/unit"
)

// responseFactor is how much larger p99 of response time must be than p99 of service time.
const responseFactor = 2.0

var responseBeyondService = rule.Rule{
	Code:    "response-beyond-service",
	Summary: "operations queued before submission",
	Doc: "Service time starts when an operation is submitted, response time when it is due. Response time is much larger than service " +
		"time when operations queue behind slow ones. Users experience the response time; service time alone hides the queue.",
	Example: `OLTP: read operations queued before submission (p99: 2.55 ms service time, 18.9 ms response time).`,
	Check:   checkResponse,
}

func checkResponse(in *rule.Input) []finding.Finding {
	var list []finding.Finding
	for _, l := range rule.Measured(in) {
		for d := range l.Directions {
			t := &l.Directions[d]
			if t.Service == nil || t.Response == nil || t.Service.Count() == 0 {
				continue
			}
			// As in tables, operations that were dropped are slower than all others; that they were is another finding.
			service, response := analysis.OperationStats(t.Service, l.NotIssued, nil), analysis.OperationStats(t.Response, l.NotIssued, nil)
			if response.AtLeast.Has("p99") || !(response.P99 >= responseFactor*service.P99) { // nor of too few
				continue
			}
			list = append(list, in.About(l, finding.Info, "Use response time; compare service time only with closed-loop figures (fio clat, X-Ray).",
				"%s: %s operations queued before submission (p99: %s service time, %s response time).", in.Name(l), l.Engine().Operation(d),
				unit.FormatLatency(float64(service.P99)), unit.FormatLatency(float64(response.P99))))
		}
	}
	return list
}
