// A JNI library whose memory has one right holder each: objects of C++ types with blocks of their own, whose addresses a Java field
// holds, a static Java field, the library's own data, or nothing; a mapping, a block of memalign and one behind a header of the
// library's own, each with a field. Built with g++ -shared -fPIC.

#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>
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

static void function() {
}

// What the first words of blocks lead to: tables of types with names that nobody would give a type.
static std::string names[] = {std::string(4 << 20, 'N'), "\x1b[31m4evil", "N7rocksdb99999999999LRUE", std::string(3000, 'P') + "i", ""};
static const void *informations[5][2];
static const void *tables[5][3];

static void forge(long count) {
    for (int i = 0; i < 5; i++) {
        informations[i][1] = names[i].c_str();
        tables[i][1] = informations[i];
        tables[i][2] = reinterpret_cast<const void *>(&function);
    }
    // Each block is full of pointers to itself and to its neighbour.
    void **before = nullptr;
    for (long i = 0; i < count; i++) {
        void **block = static_cast<void **>(std::malloc(8192));
        block[0] = &tables[i % 5][2];
        for (int word = 1; word < 1024; word++)
            block[word] = word % 2 ? block : before;
        before = block;
    }
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
    case 4: {
        void *mapping = mmap(nullptr, count * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return reinterpret_cast<long>(std::memset(mapping, 1, count * bytes));
    }
    case 5: {
        void *block = nullptr;
        return posix_memalign(&block, 1 << 16, count * bytes) ? 0 : reinterpret_cast<long>(std::memset(block, 1, count * bytes));
    }
    case 6:
        return reinterpret_cast<long>(std::memset(std::malloc(count * bytes), 1, count * bytes)) + 16;
    case 7:
        held::forge(count);
        return 0;
    default:
        held::make<held::OfNobody>(count, bytes);
        return 0;
    }
}
