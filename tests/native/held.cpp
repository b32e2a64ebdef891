// A JNI library whose memory has one right holder each: objects of C++ types with blocks of their own, whose addresses a Java field
// holds, a static Java field, the library's own data, or nothing. Built with g++ -shared -fPIC.

#include <cstdlib>
#include <cstring>
#include <vector>

namespace held {

struct Object {
    std::vector<void *> blocks;
    virtual ~Object() = default;
    void fill(long count, long bytes) {
        for (long i = 0; i < count; i++) {
            void *block = std::malloc(bytes);
            std::memset(block, 1, bytes);
            blocks.push_back(block);
        }
    }
};
struct OfField : Object {};
struct OfStatic : Object {};
struct OfLibrary : Object {};
struct OfNobody : Object {};

static std::vector<Object *> registered;

template <class Of> static long make(long count, long bytes) {
    Of *object = new Of();
    object->fill(count, bytes);
    return reinterpret_cast<long>(object);
}

}

// Handle of an object with `count` blocks of `bytes`; 0 where Java is not to hold it.
extern "C" long Java_marusa_Holding_make(void *, void *, int kind, long count, long bytes) {
    switch (kind) {
    case 0:
        return held::make<held::OfField>(count, bytes);
    case 1:
        return held::make<held::OfStatic>(count, bytes);
    case 2:
        held::registered.push_back(reinterpret_cast<held::Object *>(held::make<held::OfLibrary>(count, bytes)));
        return 0;
    default:
        held::make<held::OfNobody>(count, bytes);
        return 0;
    }
}
