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
	for name, owners := range map[string][]metav1.OwnerReference{"Fat": fat, "Many": many} {
		o, err := slimOwned(input.KindConfigMap, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "app", OwnerReferences: owners}})
		if err != nil {
			t.Fatal(err)
		}
		if size := len(strings.Join(o.Owners, "")); size == 0 || size > 16<<10 {
			t.Errorf("%s: %d bytes of %d owners are kept", name, size, len(o.Owners))
		}
	}
}
