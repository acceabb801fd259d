package record_test

import (
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// usual is the entry of a workload with three inputs that Lockstep has rolled out.
func usual() record.Entry {
	e := record.Entry{
		ID: "Deployment.apps/shop/web", UID: "8a1f7f5e-0f0c-4f5e-9d3b-2b1f6a4c9e10", Inputs: map[input.ID]record.Delivered{},
		Coverage: record.Coverage{RolledOutAt: time.Date(2026, 11, 15, 3, 4, 0, 0, time.UTC), Accounted: 7, Template: record.Template{Generation: 9, Sum: sum}},
	}
	for _, id := range []input.ID{input.ConfigMap("app"), input.ConfigMap("web-settings"), input.Secret("db")} {
		e.Inputs[id] = record.Delivered{Version: version(sum), Shown: input.Tracked(sum[:10]), From: "6", Was: sum[:10]}
	}
	return e
}

func BenchmarkCodec(b *testing.B) {
	for name, e := range map[string]record.Entry{"Usual": usual(), "Every": every()} {
		text, err := e.Encode()
		if err != nil {
			b.Fatal(err)
		}
		b.Run("Encode/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = e.Encode()
			}
		})
		b.Run("Decode/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = record.Decode(text)
			}
		})
		b.Run("Equal/"+name, func(b *testing.B) {
			other := e.Clone()
			b.ReportAllocs()
			for b.Loop() {
				_ = e.Equal(other)
			}
		})
	}
}
