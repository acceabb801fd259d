package ownership

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// TestOwnersAreBounded: a tenant can fill an object with owners, or with one owner.
func TestOwnersAreBounded(t *testing.T) {
	t.Parallel()
	fat := []metav1.OwnerReference{{UID: types.UID(strings.Repeat("a", 1<<20))}}
	var many []metav1.OwnerReference
	for i := range 20_000 {
		many = append(many, metav1.OwnerReference{UID: types.UID(fmt.Sprintf("%036d", i))})
	}
	for name, tc := range map[string]struct {
		owners      []metav1.OwnerReference
		kept, bytes int
	}{"Fat": {fat, 1, 512}, "Many": {many, 256, 256 * 36}} {
		o, err := slimOwned(input.KindConfigMap, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "app", OwnerReferences: tc.owners}})
		if err != nil {
			t.Fatal(err)
		}
		if size := len(strings.Join(o.Owners, "")); len(o.Owners) != tc.kept || size != tc.bytes {
			t.Errorf("%s: %d bytes of %d owners are kept, want %d of %d", name, size, len(o.Owners), tc.bytes, tc.kept)
		}
	}
}
